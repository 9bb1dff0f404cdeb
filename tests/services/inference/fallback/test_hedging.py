"""A silent model costs the caller seconds: the next one is asked beside it."""

import asyncio

import pytest

from gateway.conversation.v1.conversation_pb2 import MEDIA_KIND_IMAGE, Block, Media
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import UpstreamError
from tests.services.inference.fallback.scripted_engine import (
    FOREVER,
    ScriptedEngine,
    answer,
    chain,
    failing,
    request,
)
from tests.services.inference.fallback.virtual_time import in_no_time

both = pytest.mark.parametrize("stream", [False, True])


def now() -> float:
    return round(asyncio.get_running_loop().time(), 3)


@both
@in_no_time
async def test_the_next_model_answers_for_a_silent_one(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [FOREVER])
    text, served, _ = await scripted.ask(stream, request())
    assert (text, served.step, served.attempts) == ("I am b", "fallback-1", 2)
    assert scripted.asked() == [(0, "a"), (10, "b")]
    assert now() == 10
    assert scripted.is_quiet()
    assert (scripted.counted("cancelled"), scripted.counted("failed")) == (1, 0)
    assert not scripted.engine.breakers.states()


@both
@in_no_time
async def test_the_first_wins_if_its_content_comes_first(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [12, *answer("I am a")])
    scripted.p.plays("b", [FOREVER])
    text, served, _ = await scripted.ask(stream, request())
    assert (text, served.step, served.attempts) == ("I am a", "primary", 2)
    assert now() == 12
    assert scripted.is_quiet()
    assert scripted.counted("cancelled") == 1


@both
@in_no_time
async def test_when_both_are_silent_a_third_is_asked(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [FOREVER])
    scripted.p.plays("b", [FOREVER])
    text, served, _ = await scripted.ask(stream, request())
    assert (text, served.attempts) == ("I am c", 3)
    assert scripted.asked() == [(0, "a"), (10, "b"), (20, "c")]
    assert scripted.is_quiet()


@both
@in_no_time
async def test_a_second_that_fails_leaves_the_race_to_the_first(stream):
    scripted = ScriptedEngine(fallbacks=("b",))
    scripted.p.plays("a", [15, *answer("I am a")])
    scripted.p.plays("b", [failing(401)])
    text, _, _ = await scripted.ask(stream, request())
    assert text == "I am a"
    assert scripted.is_quiet()


@both
@in_no_time
async def test_a_first_that_fails_leaves_the_race_to_the_second(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [11, failing(401)])
    scripted.p.plays("b", [4, *answer("I am b")])
    text, _, _ = await scripted.ask(stream, request())
    assert (text, now()) == ("I am b", 14)
    assert scripted.asked() == [(0, "a"), (10, "b")]


@both
@in_no_time
async def test_when_both_fail_the_chain_continues_after_the_second(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [11, failing(401)])
    scripted.p.plays("b", [4, failing(401)])
    text, served, _ = await scripted.ask(stream, request())
    assert (text, served.attempts) == ("I am c", 3)
    assert [name for _, name in scripted.asked()] == ["a", "b", "c"]


@both
@in_no_time
async def test_when_all_fail_each_was_tried_once(stream):
    scripted = ScriptedEngine(fallbacks=("b",))
    scripted.p.plays("a", [12, failing(401)])
    scripted.p.plays("b", [1, failing(404)])
    with pytest.raises(UpstreamError) as failed:
        await scripted.ask(stream, request())
    assert [one.model for one in failed.value.attempts] == ["p/a", "p/b"]
    assert scripted.is_quiet()


@both
@in_no_time
async def test_a_refusal_of_the_first_ends_the_race(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [12, failing(400)])
    scripted.p.plays("b", [FOREVER])
    with pytest.raises(UpstreamError) as failed:
        await scripted.ask(stream, request())
    assert failed.value.reason == errors_pb2.REASON_UPSTREAM_REJECTED
    assert scripted.is_quiet()


@in_no_time
async def test_a_whole_answer_is_won_by_its_first_content():
    scripted = ScriptedEngine()
    first, last = answer("I am a")
    scripted.p.plays("a", [9, first, 20, last])
    text, _, _ = await scripted.ask(False, request())
    assert (text, now()) == ("I am a", 29)
    assert scripted.asked() == [(0, "a")]
    assert scripted.p.calls[0][1].stream


@in_no_time
async def test_a_broken_whole_winner_is_followed_by_the_next():
    scripted = ScriptedEngine()
    first, _ = answer("I am a")
    scripted.p.plays("a", [12, first, 3, failing(401)])
    scripted.p.plays("b", [FOREVER], answer("I am b"))
    text, _, _ = await scripted.ask(False, request())
    assert text == "I am b"
    assert scripted.asked() == [(0, "a"), (10, "b"), (15, "b")]


@in_no_time
async def test_a_broken_whole_hedge_is_followed_by_the_next():
    scripted = ScriptedEngine()
    first, _ = answer("I am b")
    scripted.p.plays("a", [FOREVER])
    scripted.p.plays("b", [first, 3, failing(401)])
    text, _, _ = await scripted.ask(False, request())
    assert (text, now()) == ("I am c", 13)
    assert scripted.is_quiet()


@both
@in_no_time
async def test_who_waits_for_a_retry_is_silent_too(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [failing(503)], [failing(503, wait=5)], [FOREVER])
    await scripted.ask(stream, request())
    assert scripted.asked() == [(0, "a"), (0.75, "a"), (5.75, "a"), (10, "b")]


@both
@in_no_time
async def test_chains_and_the_last_model_are_not_hedged(stream):
    scripted = ScriptedEngine(fallbacks=(), step_timeout_s=60)
    scripted.p.plays("a", [FOREVER])
    await scripted.ask(stream, chain("a", "b"))
    with pytest.raises(UpstreamError):
        await scripted.ask(stream, request())
    assert scripted.asked() == [(0, "a"), (60, "b"), (60, "a")]
    assert [call.stream for _, call in scripted.p.calls] == [stream] * 3


@both
@in_no_time
async def test_hedging_can_be_turned_off(stream):
    scripted = ScriptedEngine(hedge_after_s=0, step_timeout_s=60)
    scripted.p.plays("a", [FOREVER])
    await scripted.ask(stream, request())
    assert scripted.asked() == [(0, "a"), (60, "b")]
    assert [call.stream for _, call in scripted.p.calls] == [stream] * 2


@both
@pytest.mark.parametrize(
    "thinking",
    [
        pb.ThinkingConfig(mode=pb.ThinkingConfig.MODE_ENABLED, budget_tokens=1024),
        pb.ThinkingConfig(mode=pb.ThinkingConfig.MODE_ADAPTIVE),
        pb.ThinkingConfig(effort="high"),
    ],
)
@in_no_time
async def test_a_request_that_asks_to_think_is_not_hedged(stream, thinking):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [60, *answer("I am a")])
    text, _, _ = await scripted.ask(stream, request(thinking=thinking))
    assert (text, scripted.asked()) == ("I am a", [(0, "a")])


@both
@pytest.mark.parametrize(
    "thinking",
    [pb.ThinkingConfig(mode=pb.ThinkingConfig.MODE_DISABLED), pb.ThinkingConfig(effort="none")],
)
@in_no_time
async def test_a_request_not_to_think_is_hedged(stream, thinking):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [60, *answer("I am a")])
    text, _, _ = await scripted.ask(stream, request(thinking=thinking))
    assert text == "I am b"


@both
@in_no_time
async def test_a_model_that_always_thinks_is_not_hedged(stream):
    scripted = ScriptedEngine(upstreams={"a": "gpt-5"})
    scripted.p.plays("gpt-5", [60, *answer("I am a")])
    text, _, _ = await scripted.ask(stream, request())
    assert (text, scripted.asked()) == ("I am a", [(0, "gpt-5")])


@both
@in_no_time
async def test_a_model_that_keeps_failing_is_not_asked_beside_another(stream):
    scripted = ScriptedEngine(fallbacks=("b",), breaker_failures=1, hedge_after_s=5)
    scripted.p.plays("b", [failing(503)], answer("I am b"))
    with pytest.raises(UpstreamError):
        await scripted.ask(stream, request("b", fallback=1))
    scripted.p.plays("a", [6, failing(503)])
    text, _, _ = await scripted.ask(stream, request())
    # It is the last that is left when the first has failed, and has to be tried then.
    assert (text, scripted.asked()) == ("I am b", [(0, "b"), (0, "a"), (6, "b")])


@pytest.mark.parametrize("at", [5, 10.5, 11.5])
@both
@in_no_time
async def test_a_caller_who_leaves_a_race_leaves_nothing_behind(stream, at):
    scripted = ScriptedEngine()
    first, _ = answer("I am b")
    scripted.p.plays("a", [FOREVER])
    scripted.p.plays("b", [1, first, FOREVER])
    asking = asyncio.create_task(scripted.ask(stream, request()))
    await asyncio.sleep(at)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert scripted.is_quiet()
    assert scripted.counted("cancelled") == (1 if at == 5 else 2)


@both
@in_no_time
async def test_simultaneous_first_contents_spoil_nothing(stream):
    for first_at in (11 - 1e-9, 11, 11 + 1e-9):
        scripted = ScriptedEngine()
        began = now()
        scripted.p.plays("a", [first_at, *answer("I am a")])
        scripted.p.plays("b", [1, *answer("I am b")])
        text, served, _ = await scripted.ask(stream, request())
        assert text == f"I am {served.model}"
        assert now() - began == pytest.approx(11, abs=0.01)
        assert scripted.is_quiet()
        assert scripted.counted("served") == scripted.counted("cancelled") == 1


@in_no_time
async def test_an_interrupted_caller_is_still_cancelled():
    """A caller who leaves in the moment the second wins is gone all the same."""
    for steps in range(12):
        scripted = ScriptedEngine()
        scripted.p.plays("a", [FOREVER])
        scripted.p.plays("b", [0, 0, *answer("I am b")])
        asking = asyncio.create_task(scripted.ask(True, request()))
        await asyncio.sleep(10)
        for _ in range(steps):
            await asyncio.sleep(0)
        if asking.done():
            break
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert scripted.is_quiet()
    assert steps > 2


@both
@in_no_time
async def test_a_task_remains_cancellable_after_a_hedge(stream):
    scripted = ScriptedEngine()
    scripted.p.plays("a", [FOREVER])
    await scripted.ask(stream, request())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@both
@in_no_time
async def test_the_time_that_its_media_take_to_convert_is_no_silence(stream):
    scripted = ScriptedEngine(fallbacks=("b",), inputs={"a": ["text"], "b": ["text", "image"]})
    scripted.p.plays("b", [20, *answer("a cat")])
    with_media = request()
    image = Media(kind=MEDIA_KIND_IMAGE, data=b"x", mime_type="image/png")
    with_media.messages[0].blocks.append(Block(media=image))
    text, served, usage = await scripted.ask(stream, with_media)
    assert (text, served.attempts) == ("I am a", 1)
    assert list(served.adapted) == ["messages[0].blocks[1]:image-described"]
    assert [helper.model for helper in usage.helpers] == ["b"]
    assert scripted.asked() == [(0, "b"), (20, "a")]
    assert scripted.is_quiet()
