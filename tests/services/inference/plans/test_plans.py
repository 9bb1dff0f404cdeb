"""The plans that requests come to: their models, bounds, retries and fallbacks."""

from typing import Any

import pytest

from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import GatewayError
from services.common.settings import Limits, Model, Provider
from services.inference.models.routing import Models
from services.inference.plans.plan import PRIMARY_STEP, Plan, Plans, Step
from services.inference.plans.policy import FallbackRule, Retries
from services.inference.providers.base import Target
from tests.grid import each_row
from tests.services.inference.fallback.scripted_engine import (
    AUTO,
    DISABLED,
    ENABLED,
    chain,
    request,
)

LIMITS = Limits(step_timeout_s=60, hedge_after_s=7, max_recovered_characters=900)
STEP = "fallback_config.steps[0]"


def plan(request: pb.GenerateRequest) -> Plan:
    """Return the plan of a request over two models, `a` with the fallback `b`."""
    models = [
        Model(name="a", provider="p", fallbacks=["b"], max_output_tokens=100),
        Model(name="b", provider="p"),
    ]
    providers = {"p": Provider(kind="openai", base_url="http://x")}
    return Plans(Models(models, providers, {}, {}), LIMITS).plan_for(request)


def step(**fields: Any) -> Step:
    """Return the step of a chain of one."""
    (only,) = plan(chain({"model": "a", **fields})).steps
    return only


def refused(**fields: Any) -> str:
    """Return the message that refuses a chain of one."""
    with pytest.raises(GatewayError) as caught:
        step(**fields)
    return caught.value.message


def silent(thinks: bool | None, hedge_after_s: float = 5) -> Plan:
    """Return a plan of two steps of one model."""
    target = Target("m", "p", "m", thinks=thinks)
    steps = (Step("1", target, 60, Retries()), Step("2", target, 60, Retries()))
    return Plan(steps, hedge_after_s=hedge_after_s)


def test_a_step_before_the_last_is_hedged() -> None:
    assert [silent(thinks=False).hedges(index) for index in (0, 1)] == [True, False]
    assert silent(thinks=None).hedges(0)
    assert silent(thinks=False, hedge_after_s=0.5).hedges(0)
    assert not silent(thinks=True).hedges(0)
    assert not silent(thinks=False, hedge_after_s=0).hedges(0)


def test_auto_retries_hedges_and_recovers() -> None:
    made = plan(request(fallback=AUTO))
    assert [(one.step_id, one.target.name) for one in made.steps] == [
        (PRIMARY_STEP, "a"),
        ("fallback-1", "b"),
    ]
    assert {one.retries for one in made.steps} == {Retries(most=2, jitter_s=0.25)}
    assert {one.timeout_s for one in made.steps} == {60}
    assert made[1:] == (None, None, 7, 900, False, False, 0, "chat")


def test_disabled_asks_one_model_once() -> None:
    made = plan(request(fallback=DISABLED))
    assert [(one.target.name, one.retries) for one in made.steps] == [("a", Retries())]
    assert made[1:] == (None, None, 0, None, True, False, 0, "chat")


@pytest.mark.parametrize(
    ("thinking", "hedge_after_s"),
    [
        (pb.ThinkingConfig(mode=pb.ThinkingConfig.MODE_ENABLED), 0),
        (pb.ThinkingConfig(effort="low"), 0),
        (pb.ThinkingConfig(mode=pb.ThinkingConfig.MODE_DISABLED), 7),
        (pb.ThinkingConfig(effort="none"), 7),
        (None, 7),
    ],
)
def test_nobody_is_asked_beside_thinking(
    thinking: pb.ThinkingConfig | None, hedge_after_s: float
) -> None:
    assert plan(request(thinking=thinking)).hedge_after_s == hedge_after_s


@pytest.mark.parametrize(("n", "recovered"), [(0, 900), (1, 900), (2, None)])
def test_one_choice_alone_is_recovered(n: int, recovered: int | None) -> None:
    assert plan(request(n=n)).max_recovered_characters == recovered
    assert plan(chain("a", n=n)).max_recovered_characters == recovered


def test_a_chain_has_its_own_bounds() -> None:
    bounded = plan(chain("a", config={"global_timeout_ms": 2500, "max_total_retries": 0}))
    assert bounded[1:] == (2.5, 0, 0, 900, True, False, 0, "chat")
    assert plan(chain("a"))[1:] == (None, None, 0, 900, True, False, 0, "chat")
    assert plan(chain("a", config={"global_timeout_ms": 1})).timeout_s == 0.001


def test_an_enabled_chain_follows_its_model() -> None:
    made = plan(chain("b", mode=ENABLED))
    assert [(one.step_id, one.target.name, one.path) for one in made.steps] == [
        (PRIMARY_STEP, "a", ""),
        ("s1", "b", STEP),
    ]
    assert made.steps[0].retries == Retries()


def test_a_step_has_the_bounds_that_it_sets() -> None:
    assert step() == Step("s1", step().target, 60, Retries(), path=STEP)
    assert step(timeout_ms=1500).timeout_s == 1.5
    assert step(timeout_ms=1).timeout_s == 0.001
    assert step(timeout_ms=61_000).timeout_s == 60
    policy = pb.RetryPolicy(max_retries=10, backoff_factor=1, jitter_ms=250)
    assert step(retry_policy=policy).retries == Retries(10, 1, 0.25)
    assert step(retry_policy=pb.RetryPolicy()).retries == Retries(0, 2, 0)
    assert refused(timeout_ms=0) == f"{STEP}.timeout_ms: must be at least 1"


def test_a_rule_of_failures_is_read() -> None:
    rule = pb.FailOn(status_code=[100, 599], error_contains=["No Quota"])
    assert step(fail_on=rule).fail_on == FallbackRule(frozenset({100, 599}), ("no quota",))
    refusal = refused(fail_on=pb.FailOn(status_code=[600]))
    assert refusal == f"{STEP}.fail_on.status_code[0]: must be 100 to 599"


@pytest.mark.parametrize(("length", "is_taken"), [(1, True), (256, True), (257, False)])
def test_the_name_of_a_step_is_bounded(length: int, is_taken: bool) -> None:
    if is_taken:
        assert step(step_id="x" * length).step_id == "x" * length
    else:
        refusal = refused(step_id="x" * length)
        assert refusal == f"{STEP}.step_id: is required, with at most 256 characters"


@each_row(
    "fields",
    [
        {"model": "b"},
        {"dialect": 1},
        {"thinking_block_strategy": 1},
        {"use_built_in_tools": True},
        {"multimodal": pb.Multimodal()},
        {"fallback": AUTO},
        {"fallback_config": pb.FallbackConfig()},
        {"memory": pb.Memory()},
        {"lowers_max_tokens": True},
        {"omits_stop_sequence": True},
        {"has_unsigned_thinking": True},
    ],
)
def test_a_step_sets_nothing_of_the_whole_request(fields: dict[str, Any]) -> None:
    (name,) = fields
    refusal = refused(parameters=pb.GenerateRequest(**fields))
    assert refusal == f"{STEP}.parameters.{name}: cannot be set for a single step"


def test_a_step_has_the_parameters_that_it_sets() -> None:
    parameters = pb.GenerateRequest(temperature=0.5)
    assert step(parameters=parameters).parameters == parameters


def test_a_limit_of_tokens_is_kept_or_lowered() -> None:
    assert plan(request(max_tokens=100)).steps
    assert plan(request(max_tokens=101, lowers_max_tokens=True)).steps
    with pytest.raises(GatewayError, match="must be at most 100 for a"):
        plan(request(max_tokens=101))
