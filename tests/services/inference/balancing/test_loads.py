"""The state of deployments that a process keeps."""

import pytest
from prometheus_client import CollectorRegistry

from services.inference.balancing.loads import Loads, load_class
from services.inference.balancing.rate_limits import Cooldown
from services.inference.circuit_breaker import ModelKey
from services.inference.metrics import InferenceMetrics
from tests.manual_clock import ManualClock

A, B = ModelKey("p", "a"), ModelKey("p", "b")


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def loads(clock, registry):
    return Loads(clock.monotonic, InferenceMetrics(registry))


def test_a_cooldown_ends_by_itself(loads, clock):
    loads.cool(A, Cooldown(7, "rate_limited"))
    assert (loads.wait_s(A), loads.wait_s(B)) == (7, 0)
    clock.now_s += 5
    assert loads.wait_s(A) == 2
    clock.now_s += 5
    assert loads.wait_s(A) == 0


def test_a_shorter_cooldown_does_not_end_a_longer_one(loads, registry):
    loads.cool(A, Cooldown(7, "rate_limited"))
    loads.cool(A, Cooldown(1, "exhausted"))
    assert loads.wait_s(A) == 7
    labels = {"provider": "p", "model": "a", "reason": "rate_limited"}
    assert registry.get_sample_value("gateway_deployment_cooldowns_total", labels) == 1


def test_calls_count_by_weight(loads):
    loads.of(A).calls = 5
    assert loads.load_by_calls(A, 3) == loads.load_by_calls(B, 0.5) == 2


def test_times_are_averaged_by_class(loads, clock):
    short, long = load_class(100, whole=False), load_class(100_000, whole=False)
    loads.of(A).note(short, 1.0, clock.now_s)
    loads.of(A).note(short, 2.0, clock.now_s)
    loads.of(B).note(short, 0.5, clock.now_s)
    assert loads.estimated_latencies([A, B], short) == [pytest.approx(1.3), 0.5]
    assert loads.estimated_latencies([A, B], long) == [1, 1]


def test_more_calls_mean_a_longer_wait(loads, clock):
    loads.of(A).note(0, 1.0, clock.now_s)
    loads.of(B).note(0, 2.5, clock.now_s)
    loads.of(A).calls = 2
    assert loads.estimated_latencies([A, B], 0) == [3, 2.5]


def test_one_of_unknown_time_is_as_quick_as_the_quickest(loads, clock):
    loads.of(A).note(0, 0.25, clock.now_s)
    assert loads.estimated_latencies([A, B], 0) == [0.25, 0.25]


def test_old_times_are_forgotten(loads, clock):
    loads.of(A).note(0, 9.0, clock.now_s)
    clock.now_s += 61
    loads.of(B).note(0, 1.0, clock.now_s)
    assert loads.estimated_latencies([A, B], 0) == [1, 1]


def test_sizes_and_whole_answers_are_classes_of_their_own():
    sizes = (100, 5_000, 100_000)
    classes = [load_class(size, whole=whole) for size in sizes for whole in (False, True)]
    assert classes == [0, 1, 2, 3, 4, 5]


def test_the_number_of_deployments_is_bounded(loads):
    for number in range(2_000):
        loads.of(ModelKey("p", str(number)))
    loads.cool(ModelKey("p", "0"), Cooldown(7, "refused"))
    assert loads.wait_s(ModelKey("p", "0")) == 7
    assert len(loads._loads) == 1_000
