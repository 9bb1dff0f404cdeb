"""Models with several deployments: which are asked, in which order and when."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import UpstreamError, unsupported
from services.common.settings import Model
from services.inference.circuit_breaker import ModelKey
from services.inference.providers.failures import StalledError
from tests.services.inference.fallback.scripted_engine import (
    DISABLED,
    FOREVER,
    ScriptedEngine,
    answer,
    broken,
    chain,
    cut,
    failing,
    request,
    silence,
)
from tests.services.inference.fallback.virtual_time import in_no_time

both = pytest.mark.parametrize("stream", [False, True])


def deployed(
    *upstreams: str,
    fallbacks: Sequence[str] = (),
    limits: dict[str, Any] | None = None,
    **fields: Any,
) -> ScriptedEngine:
    """Return an engine whose model `d` is deployed at `p`, under other names there.

    Its deployments are asked in this order: with one draw for all, the larger weight is first.
    """
    weights = [2.0**-number for number in range(len(upstreams))]
    places = [
        {"provider": "p", "upstream": upstream, "weight": weight}
        for upstream, weight in zip(upstreams, weights, strict=True)
    ]
    settings = {"name": "d", "deployments": places, "fallbacks": list(fallbacks), "sticky": False}
    model = Model.model_validate(settings | fields)
    scripted = ScriptedEngine(
        more=[model], uniform=lambda low, high: (low + high) / 2, **limits or {}
    )
    for upstream in upstreams:
        scripted.p.plays(upstream, answer(f"I am {upstream}"))
    return scripted


@both
@in_no_time
async def test_a_healthy_deployment_serves_and_is_named(stream):
    scripted = deployed("d1", "d2")
    text, served, _ = await scripted.ask(stream, request("d"))
    assert text == "I am d1"
    assert (served.model, served.provider, served.deployment) == ("d", "p", "p/d1")
    assert (served.step, served.attempts) == ("primary", 1)


@both
@in_no_time
async def test_a_model_with_one_names_no_deployment(stream):
    scripted = deployed("d1")
    _, served, _ = await scripted.ask(stream, request("d"))
    assert (served.provider, served.deployment) == ("p", "")


@both
@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 529])
@in_no_time
async def test_a_failure_goes_to_the_next_deployment_at_once(stream, status):
    scripted = deployed("d1", "d2", "d3", fallbacks=["b"])
    scripted.p.plays("d1", [failing(status)])
    scripted.p.plays("d2", [cut()])
    text, served, _ = await scripted.ask(stream, request("d"))
    assert scripted.asked() == [(0, "d1"), (0, "d2"), (0, "d3")]
    assert (text, served.step, served.attempts) == ("I am d3", "primary", 3)


@both
@pytest.mark.parametrize("status", [400, 413])
@in_no_time
async def test_a_refused_request_goes_nowhere(stream, status):
    scripted = deployed("d1", "d2")
    scripted.p.plays("d1", [failing(400)])
    with pytest.raises(UpstreamError):
        await scripted.ask(stream, request("d"))
    assert scripted.asked() == [(0, "d1")]


@both
@in_no_time
async def test_disabled_asks_one_deployment_once(stream):
    scripted = deployed("d1", "d2")
    scripted.p.plays("d1", [failing(500)])
    with pytest.raises(UpstreamError):
        await scripted.ask(stream, request("d", fallback=DISABLED))
    assert scripted.asked() == [(0, "d1")]


@both
@in_no_time
async def test_retries_begin_when_every_deployment_has_failed(stream):
    scripted = deployed("d1", "d2", fallbacks=["b"])
    scripted.p.plays("d1", [failing(500)])
    scripted.p.plays("d2", [failing(500)])
    text, served, _ = await scripted.ask(stream, request("d"))
    # Two retries, after 0.5 and 1 s and half the jitter of a quarter; then the fallback.
    assert scripted.asked() == [
        *((0, "d1"), (0, "d2"), (0.625, "d1"), (1.75, "d2")),
        (1.75, "b"),
    ]
    assert (text, served.step, served.attempts) == ("I am b", "fallback-1", 5)


@both
@in_no_time
async def test_a_retry_goes_to_the_one_that_is_free_first(stream):
    scripted = deployed("d1", "d2")
    scripted.p.plays("d1", [failing(429, wait=9)], answer("later"))
    scripted.p.plays("d2", [failing(429, wait=3)], answer("I am d2"))
    text, _, _ = await scripted.ask(stream, request("d"))
    assert text == "I am d2"
    assert scripted.asked() == [(0, "d1"), (0, "d2"), (3, "d2")]


@in_no_time
async def test_deployments_count_neither_as_retries_nor_as_steps():
    scripted = deployed("d1", "d2", "d3")
    for name in ("d1", "d2", "d3", "b"):
        scripted.p.plays(name, [failing(500)])
    policy = pb.RetryPolicy(max_retries=3)
    chained = chain({"model": "d", "retry_policy": policy}, "b", config={"max_total_retries": 1})
    with pytest.raises(UpstreamError) as failed:
        await scripted.ask(True, chained)
    assert [name for _, name in scripted.asked()] == ["d1", "d2", "d3", "d1", "b"]
    attempted = [(one.step, one.model) for one in failed.value.attempts]
    assert attempted == [
        ("s1", "p/d1"),
        ("s1", "p/d2"),
        ("s1", "p/d3"),
        ("s1", "p/d1"),
        ("s2", "p/b"),
    ]


@in_no_time
async def test_fail_on_decides_when_all_deployments_have_failed():
    scripted = deployed("d1", "d2")
    scripted.p.plays("d1", [failing(500)])
    scripted.p.plays("d2", [failing(503)])
    rule = pb.FailOn(status_code=[503])
    text, _, _ = await scripted.ask(True, chain({"model": "d", "fail_on": rule}, "b"))
    assert text == "I am b"
    assert [name for _, name in scripted.asked()] == ["d1", "d2", "b"]


@in_no_time
async def test_the_time_of_a_step_is_that_of_all_its_deployments():
    scripted = deployed("d1", "d2")
    scripted.p.plays("d1", [3.0, failing(500)])
    scripted.p.plays("d2", [FOREVER])
    text, _, _ = await scripted.ask(True, chain({"model": "d", "timeout_ms": 5000}, "b"))
    assert text == "I am b"
    assert scripted.asked() == [(0, "d1"), (3, "d2"), (5, "b")]


@both
@in_no_time
async def test_silence_is_not_repeated_elsewhere(stream):
    scripted = deployed("d1", "d2", fallbacks=["b"])
    scripted.p.plays("d1", [silence()])
    text, _, _ = await scripted.ask(stream, request("d"))
    assert text == "I am b"
    assert [name for _, name in scripted.asked()] == ["d1", "b"]


@both
@in_no_time
async def test_another_deployment_answers_for_one_that_stalls(stream):
    scripted = deployed("d1", "d2", fallbacks=["b"])
    scripted.p.plays("d1", broken("I am", StalledError("p")))
    scripted.p.plays("d2", answer("I am d2"))
    text, _, _ = await scripted.ask(stream, request("d"))
    assert text == "I am d2"
    assert [name for _, name in scripted.asked()] == ["d1", "d2"]


@both
@in_no_time
async def test_a_cooled_deployment_is_passed_over_until_it_is_free(stream):
    scripted = deployed("d1", "d2")
    scripted.p.plays("d1", [failing(429, wait=60)], answer("I am d1"))
    for _ in range(3):
        text, _, _ = await scripted.ask(stream, request("d"))
        assert text == "I am d2"
    assert [name for _, name in scripted.asked()] == ["d1", "d2", "d2", "d2"]
    scripted.p.plays("d2", [61.0, *answer("I am d2")])
    await scripted.ask(stream, request("d"))
    text, served, _ = await scripted.ask(stream, request("d"))
    assert (text, served.attempts) == ("I am d1", 1)


@in_no_time
async def test_without_a_free_one_the_first_to_be_free_is_asked():
    scripted = deployed("d1", "d2")
    scripted.p.plays("d1", [failing(429, wait=60)])
    scripted.p.plays("d2", [failing(429, wait=40)])
    chained = chain("d")
    for _ in range(2):
        with pytest.raises(UpstreamError) as failed:
            await scripted.ask(True, chained)
    assert failed.value.status == 429
    assert [name for _, name in scripted.asked()] == ["d1", "d2", "d2"]


@in_no_time
async def test_a_cooled_deployment_stands_in_for_nobody():
    scripted = deployed("d1", "d2", fallbacks=["b"])
    scripted.p.plays("d1", [failing(429, wait=60)], answer("I am d1"))
    await scripted.ask(True, request("d"))
    scripted.p.plays("d2", [failing(500)])
    text, _, _ = await scripted.ask(True, chain("d", "b"))
    assert text == "I am b"
    assert [name for _, name in scripted.asked()] == ["d1", "d2", "d2", "b"]


@in_no_time
async def test_breakers_are_those_of_deployments():
    scripted = deployed("d1", "d2", limits={"breaker_failures": 2})
    scripted.p.plays("d1", [failing(500)])
    for _ in range(4):
        await scripted.ask(True, request("d"))
    names = [name for _, name in scripted.asked()]
    assert names == ["d1", "d2", "d1", "d2", "d2", "d2"]
    assert scripted.engine.breakers.states() == {ModelKey("p", "d1"): "open"}


@in_no_time
async def test_a_model_is_skipped_when_all_its_breakers_are_open():
    scripted = deployed("d1", "d2", fallbacks=["b"], limits={"breaker_failures": 1})
    scripted.p.plays("d1", [failing(500)])
    scripted.p.plays("d2", [failing(500)])
    for _ in range(2):
        text, _, _ = await scripted.ask(True, request("d"))
        assert text == "I am b"
    assert [name for _, name in scripted.asked()] == ["d1", "d2", "b", "b"]


@in_no_time
async def test_a_silent_deployment_is_hedged_by_the_next_model():
    scripted = deployed("d1", "d2", fallbacks=["b"], limits={"hedge_after_s": 10})
    scripted.p.plays("d1", [FOREVER])
    text, served, _ = await scripted.ask(True, request("d"))
    assert (text, served.step) == ("I am b", "fallback-1")
    assert scripted.asked() == [(0, "d1"), (10, "b")]
    assert scripted.is_quiet()


@both
@in_no_time
async def test_deployments_alone_are_not_hedged(stream):
    scripted = deployed("d1", "d2", limits={"hedge_after_s": 10})
    scripted.p.plays("d1", [30.0, *answer("slowly")])
    text, _, _ = await scripted.ask(stream, request("d"))
    assert text == "slowly"
    assert scripted.asked() == [(0, "d1")]


@in_no_time
async def test_a_broken_stream_goes_on_at_another_deployment():
    scripted = deployed("d1", "d2")
    scripted.p.plays("d1", broken("I am"))
    scripted.p.plays("d2", answer("I am whole"))
    text, _, _ = await scripted.ask(True, request("d"))
    assert text == "I am whole"
    assert scripted.asked() == [(0, "d1"), (0, "d2")]


@in_no_time
async def test_one_that_cannot_carry_the_request_is_passed_over():
    scripted = deployed("d1", "d2")
    scripted.p.plays("d1", [unsupported("n", "n: no")])
    text, served, _ = await scripted.ask(True, request("d"))
    assert (text, served.attempts) == ("I am d2", 1)


@in_no_time
async def test_calls_under_way_count_for_the_least_busy():
    scripted = deployed("d1", "d2", balance="least_busy")
    for name in ("d1", "d2"):
        scripted.p.plays(name, answer(f"I am {name}"))
    # Weights 1 and 1/2: one call of the first equals half a call of the second.
    open_streams = []
    for _ in range(3):
        open_streams.append(await scripted.engine.stream(request("d")))
        await anext(open_streams[-1])
    assert [name for _, name in scripted.asked()] == ["d1", "d1", "d2"]
    for batches in open_streams:
        await batches.aclose()
    assert _live(scripted, "d1") == _live(scripted, "d2") == 0
    loads = scripted.engine.balancer.loads
    assert [loads.of(ModelKey("p", name)).calls for name in ("d1", "d2")] == [0, 0]


@in_no_time
async def test_the_fastest_is_asked_once_times_are_known():
    scripted = deployed("d1", "d2", balance="fastest")
    slow = [5.0, *answer("I am d1")]
    scripted.p.plays("d1", slow, [failing(500)], slow)
    scripted.p.plays("d2", [1.0, *answer("I am d2")])
    for _ in range(4):
        await scripted.ask(True, request("d"))
    # The time of the second is known once it has stood in for the first.
    assert [name for _, name in scripted.asked()] == ["d1", "d1", "d2", "d2", "d2"]


def _live(scripted: ScriptedEngine, name: str) -> float | None:
    labels = {"provider": "p", "model": name}
    return scripted.registry.get_sample_value("gateway_deployment_live_calls", labels)
