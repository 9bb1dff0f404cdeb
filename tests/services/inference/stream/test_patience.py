"""How long a stream may be silent, from its own silences and those of its model."""

import pytest

from services.inference.circuit_breaker import ModelKey
from services.inference.stream.patience import Patience, UsualSilences

KEY = ModelKey("p", "m")


def patience(usual_s: float | None, limit_s: float = 300, may_switch: bool = True) -> Patience:
    return Patience(limit_s, 600, lambda: usual_s, lambda: may_switch)


@pytest.mark.parametrize(
    ("usual_s", "own_s", "allowed_s"),
    [(None, 0, 30), (None, 10, 40), (1, 0, 15), (1, 10, 40), (20, 0, 80), (90, 0, 300)],
)
def test_a_stall_is_several_times_the_longest_silence(usual_s, own_s, allowed_s):
    one = patience(usual_s)
    one.longest_s = own_s
    assert one.allowed_s() == allowed_s


def test_without_another_model_only_the_limit_counts():
    assert patience(1, may_switch=False).allowed_s() == 300
    assert Patience(300, 600).allowed_s() == 300


def test_the_limit_holds_below_the_least_stall():
    assert patience(1, limit_s=5).allowed_s() == 5


@pytest.mark.parametrize(("may_switch", "allowed_s"), [(True, 300), (False, 600)])
def test_pings_are_allowed_for_longer_without_another_model(may_switch, allowed_s):
    assert patience(1, may_switch=may_switch).without_content_s() == allowed_s


def test_content_may_always_pause_for_as_long_as_silence():
    assert Patience(300, 60).without_content_s() == 300


def test_usual_is_known_after_five_streams_without_the_longest():
    usual = UsualSilences()
    for silence in (1, 2, 200, 3):
        usual.add(KEY, silence)
        assert usual.of(KEY) is None
    usual.add(KEY, 4)
    assert usual.of(KEY) == 4


def test_only_the_latest_streams_are_usual():
    usual = UsualSilences()
    for silence in [100] * 20 + [1] * 19:
        usual.add(KEY, silence)
    assert usual.of(KEY) == 1


def test_the_models_that_are_known_are_bounded():
    usual = UsualSilences()
    for number in range(1_200):
        usual.add(ModelKey("p", str(number)), 1)
    assert len(usual._by_model) == 1_000
