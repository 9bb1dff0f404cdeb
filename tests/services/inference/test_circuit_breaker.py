"""Models that keep failing are left alone, and asked again when they are back."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import UpstreamError
from services.inference.circuit_breaker import CircuitBreakers, ModelKey
from services.inference.metrics import InferenceMetrics
from tests.manual_clock import ManualClock
from tests.services.inference.fallback.scripted_engine import (
    DISABLED,
    FOREVER,
    ScriptedEngine,
    answer,
    chain,
    failing,
    request,
)
from tests.services.inference.fallback.virtual_time import in_no_time

KEY = ModelKey("p", "a")


class Case:
    def __init__(self, failures: int = 3) -> None:
        self.clock = ManualClock(0)
        self.changes: list[str] = []
        self.jitter = 0.0
        self.breakers = CircuitBreakers(
            failures,
            self.clock.monotonic,
            lambda _, state: self.changes.append(state),
            lambda low, high: low + self.jitter * (high - low),
        )

    def fail(self) -> None:
        self.breakers.failed(KEY, self.breakers.begin(KEY))

    def open(self, failures: int = 3) -> None:
        for _ in range(failures):
            self.fail()


def test_failures_in_a_row_open_it():
    case = Case()
    case.fail()
    case.fail()
    case.breakers.succeeded(KEY)
    case.fail()
    case.fail()
    assert case.breakers.admits(KEY)
    case.fail()
    assert not case.breakers.admits(KEY)
    assert case.breakers.states() == {KEY: "open"}
    assert case.breakers.admits(ModelKey("p", "b"))
    assert case.changes == ["open"]


def test_the_pause_grows_up_to_a_quarter_of_a_minute():
    case = Case()
    case.open()
    pauses = []
    for _ in range(6):
        began = case.clock.now_s
        while not case.breakers.admits(KEY):
            case.clock.now_s += 1
        pauses.append(case.clock.now_s - began)
        case.fail()
    assert pauses == [10, 15, 15, 15, 15, 15]


def test_a_pause_counts_from_the_start_of_the_probe():
    case = Case()
    case.open()
    case.clock.now_s = 10
    probe = case.breakers.begin(KEY)
    case.clock.now_s = 20  # the probe's failure took so long
    case.breakers.failed(KEY, probe)
    assert not case.breakers.admits(KEY)
    case.clock.now_s = 25
    assert case.breakers.admits(KEY)


def test_a_pause_is_shorter_by_chance():
    case = Case()
    case.jitter = 1.0
    case.open()
    case.clock.now_s = 7.9
    assert not case.breakers.admits(KEY)
    case.clock.now_s = 8
    assert case.breakers.admits(KEY)


def test_one_attempt_at_a_time_probes():
    case = Case()
    case.open()
    case.clock.now_s = 10
    assert case.breakers.states() == {KEY: "half_open"}
    assert case.breakers.begin(KEY)
    assert not case.breakers.admits(KEY)
    assert not case.breakers.begin(KEY)
    case.breakers.cancelled(KEY, probe=True)
    assert case.breakers.admits(KEY)
    assert case.breakers.begin(KEY)
    case.breakers.succeeded(KEY)
    assert case.breakers.states() == {}
    assert case.changes == ["open", "half_open", "open", "half_open", "closed"]


def test_one_success_closes_it_and_the_pause_is_short_again():
    case = Case()
    case.open()
    case.clock.now_s = 10
    case.fail()
    case.clock.now_s = 30
    case.breakers.begin(KEY)
    case.breakers.succeeded(KEY)
    case.open(2)
    assert case.breakers.admits(KEY)
    case.fail()
    case.clock.now_s += 10
    assert case.breakers.admits(KEY)


def test_an_answering_probe_admits_others_until_it_fails():
    case = Case()
    case.open()
    case.clock.now_s = 10
    probe = case.breakers.begin(KEY)
    case.breakers.answers(KEY)
    assert case.breakers.admits(KEY)
    case.breakers.failed(KEY, probe)
    assert not case.breakers.admits(KEY)
    case.clock.now_s += 14
    assert not case.breakers.admits(KEY)
    case.clock.now_s += 1
    assert case.breakers.admits(KEY)


def test_attempts_begun_before_it_opened_change_nothing():
    case = Case()
    late = [case.breakers.begin(KEY) for _ in range(5)]
    case.open()
    for probe in late:
        case.breakers.failed(KEY, probe)
    case.clock.now_s = 10
    assert case.breakers.admits(KEY)


def test_only_so_many_models_are_remembered():
    case = Case(failures=1)
    for number in range(1500):
        case.breakers.failed(ModelKey("p", str(number)), probe=False)
    assert len(case.breakers.states()) == 1000
    assert case.changes.count("closed") == 500


@in_no_time
async def test_a_model_that_is_down_is_soon_left_alone_and_soon_back():
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(503)])
    back_at = None
    while asyncio.get_running_loop().time() < 100:
        if 60 <= asyncio.get_running_loop().time() < 60.5:
            scripted.p.plays("a", answer("I am a"))
        _, route, _ = await scripted.ask(False, request())
        if route.model == "a" and back_at is None:
            back_at = asyncio.get_running_loop().time()
        await asyncio.sleep(0.5)
    assert back_at is not None
    assert 60 <= back_at <= 75.5
    probes = [at for at, name in scripted.asked() if name == "a" and 5 < at < 60]
    assert len(probes) <= 5


@in_no_time
async def test_an_open_breaker_stops_retries():
    scripted = ScriptedEngine(breaker_failures=2)
    scripted.p.plays("a", [failing(503)])
    policy = pb.RetryPolicy(max_retries=5)
    await scripted.ask(True, chain({"model": "a", "retry_policy": policy}, "b"))
    assert [name for _, name in scripted.asked()] == ["a", "a", "b"]


@in_no_time
async def test_the_last_model_left_is_asked_however_often_it_failed():
    scripted = ScriptedEngine(breaker_failures=1)
    for name in ("a", "b"):
        scripted.p.plays(name, [failing(503)])
    for _ in range(2):
        with pytest.raises(UpstreamError):
            await scripted.ask(True, chain("a", "b"))
    with pytest.raises(UpstreamError):
        await scripted.ask(True, request(fallback=DISABLED))
    assert [name for _, name in scripted.asked()] == ["a", "b", "b", "a"]


@in_no_time
async def test_refusals_do_not_open_it_and_those_who_left_neither():
    scripted = ScriptedEngine(breaker_failures=1)
    scripted.p.plays("a", [failing(401)])
    scripted.p.plays("b", [FOREVER])
    await scripted.ask(True, chain("a", "c"))
    asking = asyncio.create_task(scripted.ask(True, chain("b")))
    await asyncio.sleep(1)
    asking.cancel()
    await asyncio.wait([asking])
    assert scripted.engine.breakers.states() == {}


@in_no_time
async def test_it_is_shown_to_operators():
    scripted = ScriptedEngine(breaker_failures=1)
    scripted.p.plays("a", [failing(503)], answer("well"))

    def shown() -> float | None:
        labels = {"provider": "p", "model": "a"}
        return scripted.registry.get_sample_value("gateway_breaker_open", labels)

    await scripted.ask(True, chain("a", "b"))
    assert shown() == 1
    await asyncio.sleep(10)
    await scripted.ask(True, chain("a", "b"))
    assert shown() == 0
    assert scripted.engine.breakers.states() == {}


@in_no_time
async def test_a_probe_that_streams_for_long_holds_nobody_up():
    scripted = ScriptedEngine(breaker_failures=1)
    first, last = answer("I am a")
    scripted.p.plays("a", [failing(503)], [first, 300, last])
    await scripted.ask(True, chain("a", "b"))
    await asyncio.sleep(10)
    batches = await scripted.engine.stream(chain("a", "b"))
    await anext(batches)
    other = await scripted.engine.stream(chain("a", "b"))
    assert (await anext(other))[0].start.route.model == "a"
    await other.aclose()
    await batches.aclose()


def test_of_unknown_models_only_the_first_have_a_label():
    registry = CollectorRegistry()
    metrics = InferenceMetrics(registry)
    for number in range(1000):
        metrics.breaker_changed(ModelKey("p", f"unknown-{number}"), "open", is_known=False)
    metrics.breaker_changed(ModelKey("p", "known"), "open", is_known=True)
    metrics.breaker_changed(ModelKey("p", "unknown-7"), "closed", is_known=False)
    shown = {
        sample.labels["model"]: sample.value
        for metric in registry.collect()
        if metric.name == "gateway_breaker_open"
        for sample in metric.samples
    }
    assert len(shown) == 101
    assert shown["known"] == 1
    assert shown["unknown-7"] == 0
