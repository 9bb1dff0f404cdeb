"""The order and the times of attempts, whole and streamed."""

import asyncio

import pytest

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2 as pb
from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import GatewayError, UpstreamError, invalid, unsupported
from services.inference.fallback.runner import FallbackRunner
from services.inference.run import engine
from tests.services.inference.fallback.scripted_engine import (
    DISABLED,
    ENABLED,
    FOREVER,
    ScriptedEngine,
    answer,
    chain,
    cut,
    failing,
    request,
    silence,
    start,
)
from tests.services.inference.fallback.virtual_time import in_no_time

both = pytest.mark.parametrize("stream", [False, True])


@both
@in_no_time
async def test_a_healthy_model_is_asked_once(stream):
    scripted = ScriptedEngine()
    text, route, _ = await scripted.ask(stream, request())
    assert (text, route.step, route.attempts) == ("I am a", "primary", 1)
    assert scripted.asked() == [(0, "a")]
    assert scripted.counted("served") == 1


@both
@in_no_time
async def test_disabled_asks_once(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(500)])
    with pytest.raises(UpstreamError) as failed:
        await scripted.ask(stream, request(fallback=DISABLED))
    assert scripted.asked() == [(0, "a")]
    assert len(failed.value.attempts) == 1


@both
@in_no_time
async def test_auto_tries_a_model_three_times_and_then_its_fallbacks(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(500)])
    scripted.p.plays("b", [failing(404)])
    text, route, _ = await scripted.ask(stream, request())
    assert text == "I am c"
    assert (route.model, route.step, route.attempts) == ("c", "fallback-2", 5)
    # 0.5 s, doubled, and the whole jitter of a quarter.
    assert scripted.asked() == [(0, "a"), (0.75, "a"), (2, "a"), (2, "b"), (2, "c")]


@both
@in_no_time
async def test_usage_is_that_of_the_step_that_served(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [[start()], cut()])
    scripted.p.plays("b", answer("I am b", tokens=9))
    _, route, usage = await scripted.ask(stream, request())
    assert (route.model, usage.output_tokens) == ("b", 9)


@both
@in_no_time
async def test_when_all_fail_the_last_failure_lists_every_attempt(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(401)])
    scripted.p.plays("b", [failing(404)])
    scripted.p.plays("c", [0.2, failing(400)])
    with pytest.raises(UpstreamError) as failed:
        await scripted.ask(stream, chain("b", "c", mode=ENABLED))
    assert failed.value.status == 400
    attempted = [
        (one.step, one.model, one.status, one.duration_ms) for one in failed.value.attempts
    ]
    assert attempted == [("primary", "p/a", 401, 0), ("s1", "p/b", 404, 0), ("s2", "p/c", 400, 200)]


@both
@in_no_time
async def test_a_refusal_ends_the_chain(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(400)])
    with pytest.raises(UpstreamError):
        await scripted.ask(stream, chain("b", mode=ENABLED))
    assert scripted.asked() == [(0, "a")]


@both
@in_no_time
async def test_strict_never_looks_the_outer_model_up(stream):
    scripted = ScriptedEngine()
    text, route, _ = await scripted.ask(stream, chain("b", model="nobody"))
    assert (text, route.step) == ("I am b", "s1")


@both
@in_no_time
async def test_a_step_is_retried_with_its_own_delays(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(503)])
    policy = pb.RetryPolicy(max_retries=3, backoff_factor=3, jitter_ms=100)
    await scripted.ask(stream, chain({"model": "a", "retry_policy": policy}, "b"))
    # 0.5, 1.5 and 4.5 s, each with 0.1 s of jitter.
    assert scripted.asked() == [(0, "a"), (0.6, "a"), (2.2, "a"), (6.8, "a"), (6.8, "b")]


@in_no_time
async def test_retries_are_none_unless_asked_for():
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(503)])
    await scripted.ask(True, chain("a", "b"))
    assert scripted.asked() == [(0, "a"), (0, "b")]


@in_no_time
async def test_all_retries_together_are_bounded():
    scripted = ScriptedEngine()
    for name in ("a", "b", "c"):
        scripted.p.plays(name, [failing(503)])
    policy = pb.RetryPolicy(max_retries=2)
    steps = [{"model": name, "retry_policy": policy} for name in ("a", "b", "c")]
    with pytest.raises(UpstreamError):
        await scripted.ask(True, chain(*steps, config={"max_total_retries": 3}))
    assert "".join(name for _, name in scripted.asked()) == "aaabbc"


@both
@in_no_time
async def test_a_wait_that_the_provider_asks_for_is_kept(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(429, wait=7)], answer("later"))
    policy = pb.RetryPolicy(max_retries=1)
    text, _, _ = await scripted.ask(stream, chain({"model": "a", "retry_policy": policy}))
    assert text == "later"
    assert scripted.asked() == [(0, "a"), (7, "a")]


@in_no_time
async def test_a_wait_that_does_not_fit_moves_on_at_once():
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(429, wait=7)])
    policy = pb.RetryPolicy(max_retries=1)
    step = {"model": "a", "retry_policy": policy, "timeout_ms": 6000}
    await scripted.ask(True, chain(step, "b"))
    assert scripted.asked() == [(0, "a"), (0, "b")]


@in_no_time
async def test_auto_moves_on_or_fails_instead_of_a_long_wait():
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(429, wait=11)])
    await scripted.ask(True, request())
    assert scripted.asked() == [(0, "a"), (0, "b")]
    alone = ScriptedEngine(fallbacks=())
    alone.p.plays("a", [failing(429, wait=31)])
    with pytest.raises(UpstreamError) as failed:
        await alone.ask(True, request())
    assert (alone.asked(), failed.value.retry_after_s) == ([(0, "a")], 31)


@both
@in_no_time
async def test_rate_limits_for_ever_are_met_with_few_attempts(stream):
    scripted = ScriptedEngine(fallbacks=("b",))
    scripted.p.plays("a", [failing(429)])
    scripted.p.plays("b", [failing(429)])
    with pytest.raises(UpstreamError):
        await scripted.ask(stream, request())
    times = [at for at, _ in scripted.asked()]
    assert len(times) == 6
    assert sum(at < 3 for at in times) <= 4


@both
@in_no_time
async def test_silence_is_not_tried_again(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [silence()])
    await scripted.ask(stream, request())
    assert scripted.asked() == [(0, "a"), (0, "b")]


@both
@in_no_time
async def test_a_step_has_its_timeout_until_first_content(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [[start()], FOREVER])
    text, route, _ = await scripted.ask(stream, chain({"model": "a", "timeout_ms": 1500}, "b"))
    assert (text, route.attempts) == ("I am b", 2)
    assert scripted.asked() == [(0, "a"), (1.5, "b")]
    assert scripted.is_quiet()


@in_no_time
async def test_only_first_content_of_a_stream_ends_step_time():
    scripted = ScriptedEngine()
    for stream, expected in ((True, "I am a"), (False, "I am b")):
        first, last = answer("I am a")
        scripted.p.plays("a", [first, 5, last])
        step = {"model": "a", "timeout_ms": 2000}
        text, _, _ = await scripted.ask(stream, chain(step, "b"))
        assert text == expected


@in_no_time
async def test_a_step_never_has_more_time_than_the_operator_gives():
    scripted = ScriptedEngine(step_timeout_s=3)
    scripted.p.plays("a", [FOREVER])
    await scripted.ask(True, chain({"model": "a", "timeout_ms": 9000}, "b"))
    assert scripted.asked() == [(0, "a"), (3, "b")]


@both
@in_no_time
async def test_past_the_time_for_everything_the_chain_is_cut(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(503)])
    scripted.p.plays("b", [FOREVER])
    with pytest.raises(GatewayError) as failed:
        await scripted.ask(stream, chain("a", "b", "c", config={"global_timeout_ms": 2500}))
    assert failed.value.http_status == 504
    assert [one.reason for one in failed.value.attempts] == [
        errors_pb2.REASON_UPSTREAM_ERROR,
        errors_pb2.REASON_TIMEOUT,
    ]
    assert asyncio.get_running_loop().time() == pytest.approx(2.5)
    assert scripted.is_quiet()


@in_no_time
async def test_the_time_for_everything_includes_streaming():
    scripted = ScriptedEngine()
    first, last = answer("I am a")
    scripted.p.plays("a", [first, 5, last])
    seen = []
    with pytest.raises(GatewayError) as failed:
        async for batch in await scripted.engine.stream(
            chain("a", "b", config={"global_timeout_ms": 2500})
        ):
            seen.append(batch)
    assert failed.value.reason == errors_pb2.REASON_TIMEOUT
    assert len(seen) == 1
    assert scripted.asked() == [(0, "a")]
    assert scripted.is_quiet()


@both
@in_no_time
async def test_a_model_that_cannot_carry_the_request_is_left_out(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [unsupported("n", "n: one only")])
    scripted.p.plays("b", [failing(503)])
    text, route, _ = await scripted.ask(stream, chain("a", "b", "c"))
    assert (text, route.attempts) == ("I am c", 2)
    scripted.p.plays("c", [unsupported("n", "n: one only")])
    with pytest.raises(UpstreamError) as failed:
        await scripted.ask(stream, chain("a", "b", "c"))
    assert [one.reason for one in failed.value.attempts] == [
        errors_pb2.REASON_UNSUPPORTED,
        errors_pb2.REASON_UPSTREAM_ERROR,
        errors_pb2.REASON_UNSUPPORTED,
    ]


@both
@in_no_time
async def test_only_when_no_model_can_carry_it_the_request_is_refused(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [unsupported("n", "n: a")])
    scripted.p.plays("b", [unsupported("n", "n: b")])
    with pytest.raises(GatewayError) as refused:
        await scripted.ask(stream, chain("a", "b"))
    assert (refused.value.http_status, refused.value.message) == (400, "n: a")


@both
@in_no_time
async def test_an_invalid_request_ends_the_chain_at_step_one_only(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [invalid("store", "store: not here")])
    with pytest.raises(GatewayError) as refused:
        await scripted.ask(stream, request())
    assert refused.value.param == "store"
    assert scripted.asked() == [(0, "a")]
    scripted.p.plays("b", [failing(404)])
    text, _, _ = await scripted.ask(stream, chain("b", "a", "c"))
    assert text == "I am c"


@in_no_time
async def test_step_parameters_apply_to_their_step_alone():
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(503)])
    step = {"model": "a", "parameters": pb.GenerateRequest(temperature=0, stop_sequences=["x"])}
    await scripted.ask(True, chain(step, "b", temperature=1, top_p=0.5, stop_sequences=["y", "z"]))
    first, second = (call.request for _, call in scripted.p.calls)
    assert (first.temperature, first.top_p, list(first.stop_sequences)) == (0, 0.5, ["x"])
    assert (second.temperature, list(second.stop_sequences)) == (1, ["y", "z"])


@in_no_time
async def test_a_step_is_asked_for_no_more_than_it_writes():
    scripted = ScriptedEngine(fallbacks=("short",))
    scripted.p.plays("a", [failing(404)])
    await scripted.ask(True, request(max_tokens=5000))
    assert [call.request.max_tokens for _, call in scripted.p.calls] == [5000, 100]


@both
@in_no_time
async def test_an_empty_stream_is_a_broken_one(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [])
    scripted.p.plays("b", [[start()]])
    _, route, _ = await scripted.ask(stream, chain("a", "b", "c"))
    assert (route.model, route.attempts) == ("c", 3)


@in_no_time
async def test_a_whole_answer_of_an_empty_stream_is_retried():
    scripted = ScriptedEngine()
    first, last = answer("Hello")
    scripted.p.plays("a", [], [[start()]], [first, last])
    text, route, _ = await scripted.ask(False, request())
    assert (text, route.model, route.attempts) == ("Hello", "a", 3)
    assert scripted.counted("failed") == 2


@pytest.mark.parametrize("at", [0.1, 0.6, 2.5])
@both
@in_no_time
async def test_a_caller_who_leaves_leaves_nothing_behind(stream, at):
    """While a model is asked, while a retry waits, while a stream goes on."""
    scripted = ScriptedEngine()
    first, _ = answer("I am a")
    scripted.p.plays("a", [0.5, failing(503)], [1, first, FOREVER])
    asking = asyncio.create_task(scripted.ask(stream, request()))
    await asyncio.sleep(at)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert scripted.is_quiet()
    assert scripted.counted("cancelled") == (0 if at == 0.6 else 1)
    assert scripted.engine.breakers.states().keys() <= {("p", "a")}


@in_no_time
async def test_a_stream_that_is_closed_ends_at_the_provider():
    scripted = ScriptedEngine()
    first, last = answer("I am a")
    scripted.p.plays("a", [first, 1, last])
    batches = await scripted.engine.stream(request())
    await anext(batches)
    assert scripted.p.open == 1
    await batches.aclose()
    assert scripted.is_quiet()
    assert scripted.counted("cancelled") == 1


@in_no_time
async def test_a_streamed_whole_answer_is_accumulated_on_arrival():
    answers = []

    class Listening(FallbackRunner):
        async def _start(self):
            answers.append(await super()._start())
            return answers[-1]

    scripted = ScriptedEngine()
    first, last = answer("x")
    scripted.p.plays("a", [first, *[[Event(text="y")]] * 500, last])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "FallbackRunner", Listening)
        text, _, usage = await scripted.ask(False, request())
    assert (text, usage.output_tokens) == ("x" + "y" * 500, 3)
    [started] = answers
    assert started.head == []
    assert [block.text for block in started.answer.choices[0].blocks] == ["x" + "y" * 500]


@both
@in_no_time
async def test_the_only_model_is_retried_while_its_breaker_is_open(stream):
    scripted = ScriptedEngine(fallbacks=(), breaker_failures=1)
    scripted.p.plays("a", [failing(503)], answer("Hello"))
    text, route, _ = await scripted.ask(stream, request())
    assert (text, route.model, route.attempts) == ("Hello", "a", 2)


@both
@in_no_time
async def test_a_model_whose_breaker_opens_is_left_for_the_next(stream):
    scripted = ScriptedEngine(fallbacks=("b",), breaker_failures=1)
    scripted.p.plays("a", [failing(503)], answer("Hello"))
    text, route, _ = await scripted.ask(stream, request())
    assert (text, route.model, route.attempts) == ("I am b", "b", 2)
