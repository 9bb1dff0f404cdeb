import pytest

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import ModelPatterns, SubjectLimits
from services.accounts.limits.rules import AMOUNTS, MAX_AMOUNT, SubjectKind, UsageLimits
from services.common.errors import GatewayError
from tests.grid import each_row


def test_limits_without_a_value_limit_nothing() -> None:
    assert not UsageLimits()
    assert UsageLimits(requests_per_minute=0)
    assert UsageLimits(allowed_models=())


@each_row("name", AMOUNTS)
@each_row("amount", [-1, MAX_AMOUNT + 1])
def test_an_amount_outside_its_range_is_refused(name: str, amount: int) -> None:
    with pytest.raises(GatewayError, match=f"^{name}: must be") as raised:
        UsageLimits(**{name: amount})
    assert raised.value.param == name


@pytest.mark.parametrize("pattern", ["", "a*b", "**", "a\nb", "x" * 257])
def test_a_pattern_that_names_no_model_is_refused(pattern: str) -> None:
    with pytest.raises(GatewayError) as raised:
        UsageLimits(allowed_models=("gpt-*", pattern))
    assert raised.value.param == "allowed_models[1]"


def test_too_many_patterns_are_refused() -> None:
    UsageLimits(allowed_models=("a",) * 256)
    with pytest.raises(GatewayError, match="at most 256"):
        UsageLimits(allowed_models=("a",) * 257)


def test_the_proto_has_only_what_is_limited() -> None:
    limits = UsageLimits(tokens_per_minute=0, allowed_models=())
    assert limits.to_proto(SubjectKind.TEAM, "team_1") == SubjectLimits(
        kind=limits_pb2.SUBJECT_KIND_TEAM,
        id="team_1",
        tokens_per_minute=0,
        allowed_models=ModelPatterns(),
    )


def test_kinds_are_those_of_the_proto() -> None:
    assert [SubjectKind.of_proto(kind.proto) for kind in SubjectKind] == list(SubjectKind)
    with pytest.raises(ValueError, match="unspecified"):
        SubjectKind.of_proto(limits_pb2.SUBJECT_KIND_UNSPECIFIED)
