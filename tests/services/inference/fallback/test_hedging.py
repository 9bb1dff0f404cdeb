"""A silent model costs the caller seconds: the next one is asked beside it."""

import asyncio

import pytest

from gateway.conversation.v1.conversation_pb2 import MEDIA_KIND_IMAGE, Block, Media
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import UpstreamError
from tests.services.inference.fallback.scripted import (
    FOREVER,
    House,
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
    house = House()
    house.p.plays("a", [FOREVER])
    text, served, _ = await house.ask(stream, request())
    assert (text, served.step, served.attempts) == ("I am b", "fallback-1", 2)
    assert house.asked() == [(0, "a"), (10, "b")]
    assert now() == 10
    assert house.is_quiet()
    assert (house.counted("cancelled"), house.counted("failed")) == (1, 0)
    assert not house.engine.breakers.states()


@both
@in_no_time
async def test_the_first_wins_if_it_speaks_first_after_all(stream):
    house = House()
    house.p.plays("a", [12, *answer("I am a")])
    house.p.plays("b", [FOREVER])
    text, served, _ = await house.ask(stream, request())
    assert (text, served.step, served.attempts) == ("I am a", "primary", 2)
    assert now() == 12
    assert house.is_quiet()
    assert house.counted("cancelled") == 1


@both
@in_no_time
async def test_when_both_are_silent_a_third_is_asked(stream):
    house = House()
    house.p.plays("a", [FOREVER])
    house.p.plays("b", [FOREVER])
    text, served, _ = await house.ask(stream, request())
    assert (text, served.attempts) == ("I am c", 3)
    assert house.asked() == [(0, "a"), (10, "b"), (20, "c")]
    assert house.is_quiet()


@both
@in_no_time
async def test_a_second_that_fails_leaves_the_race_to_the_first(stream):
    house = House(fallbacks=("b",))
    house.p.plays("a", [15, *answer("I am a")])
    house.p.plays("b", [failing(401)])
    text, _, _ = await house.ask(stream, request())
    assert text == "I am a"
    assert house.is_quiet()


@both
@in_no_time
async def test_a_first_that_fails_leaves_the_race_to_the_second(stream):
    house = House()
    house.p.plays("a", [11, failing(401)])
    house.p.plays("b", [4, *answer("I am b")])
    text, _, _ = await house.ask(stream, request())
    assert (text, now()) == ("I am b", 14)
    assert house.asked() == [(0, "a"), (10, "b")]


@both
@in_no_time
async def test_when_both_fail_the_chain_goes_on_behind_the_second(stream):
    house = House()
    house.p.plays("a", [11, failing(401)])
    house.p.plays("b", [4, failing(401)])
    text, served, _ = await house.ask(stream, request())
    assert (text, served.attempts) == ("I am c", 3)
    assert [name for _, name in house.asked()] == ["a", "b", "c"]


@both
@in_no_time
async def test_when_all_fail_each_was_tried_once(stream):
    house = House(fallbacks=("b",))
    house.p.plays("a", [12, failing(401)])
    house.p.plays("b", [1, failing(404)])
    with pytest.raises(UpstreamError) as failed:
        await house.ask(stream, request())
    assert [one.model for one in failed.value.attempts] == ["p/a", "p/b"]
    assert house.is_quiet()


@both
@in_no_time
async def test_a_refusal_of_the_first_ends_the_race(stream):
    house = House()
    house.p.plays("a", [12, failing(400)])
    house.p.plays("b", [FOREVER])
    with pytest.raises(UpstreamError) as failed:
        await house.ask(stream, request())
    assert failed.value.reason == errors_pb2.REASON_UPSTREAM_REJECTED
    assert house.is_quiet()


@in_no_time
async def test_a_whole_answer_is_won_by_its_first_content():
    house = House()
    first, last = answer("I am a")
    house.p.plays("a", [9, first, 20, last])
    text, _, _ = await house.ask(False, request())
    assert (text, now()) == ("I am a", 29)
    assert house.asked() == [(0, "a")]
    assert house.p.calls[0][1].stream


@in_no_time
async def test_a_broken_whole_winner_is_followed_by_the_next():
    house = House()
    first, _ = answer("I am a")
    house.p.plays("a", [12, first, 3, failing(401)])
    house.p.plays("b", [FOREVER], answer("I am b"))
    text, _, _ = await house.ask(False, request())
    assert text == "I am b"
    assert house.asked() == [(0, "a"), (10, "b"), (15, "b")]


@in_no_time
async def test_a_broken_whole_hedge_is_followed_by_the_next():
    house = House()
    first, _ = answer("I am b")
    house.p.plays("a", [FOREVER])
    house.p.plays("b", [first, 3, failing(401)])
    text, _, _ = await house.ask(False, request())
    assert (text, now()) == ("I am c", 13)
    assert house.is_quiet()


@both
@in_no_time
async def test_who_waits_for_a_retry_is_silent_too(stream):
    house = House()
    house.p.plays("a", [failing(503)], [failing(503, wait=5)], [FOREVER])
    await house.ask(stream, request())
    assert house.asked() == [(0, "a"), (0.75, "a"), (5.75, "a"), (10, "b")]


@both
@in_no_time
async def test_chains_and_the_last_model_are_not_hedged(stream):
    house = House(fallbacks=(), step_timeout_s=60)
    house.p.plays("a", [FOREVER])
    await house.ask(stream, chain("a", "b"))
    with pytest.raises(UpstreamError):
        await house.ask(stream, request())
    assert house.asked() == [(0, "a"), (60, "b"), (60, "a")]
    assert [call.stream for _, call in house.p.calls] == [stream] * 3


@both
@in_no_time
async def test_hedging_can_be_turned_off(stream):
    house = House(hedge_after_s=0, step_timeout_s=60)
    house.p.plays("a", [FOREVER])
    await house.ask(stream, request())
    assert house.asked() == [(0, "a"), (60, "b")]
    assert [call.stream for _, call in house.p.calls] == [stream] * 2


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
    house = House()
    house.p.plays("a", [60, *answer("I am a")])
    text, _, _ = await house.ask(stream, request(thinking=thinking))
    assert (text, house.asked()) == ("I am a", [(0, "a")])


@both
@pytest.mark.parametrize(
    "thinking",
    [pb.ThinkingConfig(mode=pb.ThinkingConfig.MODE_DISABLED), pb.ThinkingConfig(effort="none")],
)
@in_no_time
async def test_a_request_not_to_think_is_hedged(stream, thinking):
    house = House()
    house.p.plays("a", [60, *answer("I am a")])
    text, _, _ = await house.ask(stream, request(thinking=thinking))
    assert text == "I am b"


@both
@in_no_time
async def test_a_model_that_always_thinks_is_not_hedged(stream):
    house = House(upstreams={"a": "gpt-5"})
    house.p.plays("gpt-5", [60, *answer("I am a")])
    text, _, _ = await house.ask(stream, request())
    assert (text, house.asked()) == ("I am a", [(0, "gpt-5")])


@both
@in_no_time
async def test_a_model_that_keeps_failing_is_not_asked_beside_another(stream):
    house = House(fallbacks=("b",), breaker_failures=1, hedge_after_s=5)
    house.p.plays("b", [failing(503)], answer("I am b"))
    with pytest.raises(UpstreamError):
        await house.ask(stream, request("b", fallback=1))
    house.p.plays("a", [6, failing(503)])
    text, _, _ = await house.ask(stream, request())
    # It is the last that is left when the first has failed, and has to be tried then.
    assert (text, house.asked()) == ("I am b", [(0, "b"), (0, "a"), (6, "b")])


@pytest.mark.parametrize("at", [5, 10.5, 11.5])
@both
@in_no_time
async def test_a_caller_who_leaves_a_race_leaves_nothing_behind(stream, at):
    house = House()
    first, _ = answer("I am b")
    house.p.plays("a", [FOREVER])
    house.p.plays("b", [1, first, FOREVER])
    asking = asyncio.create_task(house.ask(stream, request()))
    await asyncio.sleep(at)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert house.is_quiet()
    assert house.counted("cancelled") == (1 if at == 5 else 2)


@both
@in_no_time
async def test_who_speaks_at_the_very_same_moment_spoils_nothing(stream):
    for first_at in (11 - 1e-9, 11, 11 + 1e-9):
        house = House()
        began = now()
        house.p.plays("a", [first_at, *answer("I am a")])
        house.p.plays("b", [1, *answer("I am b")])
        text, served, _ = await house.ask(stream, request())
        assert text == f"I am {served.model}"
        assert now() - began == pytest.approx(11, abs=0.01)
        assert house.is_quiet()
        assert house.counted("served") == house.counted("cancelled") == 1


@in_no_time
async def test_an_interrupted_caller_is_still_cancelled():
    """A caller who leaves in the moment the second wins is gone all the same."""
    for steps in range(12):
        house = House()
        house.p.plays("a", [FOREVER])
        house.p.plays("b", [0, 0, *answer("I am b")])
        asking = asyncio.create_task(house.ask(True, request()))
        await asyncio.sleep(10)
        for _ in range(steps):
            await asyncio.sleep(0)
        if asking.done():
            break
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert house.is_quiet()
    assert steps > 2


@both
@in_no_time
async def test_a_task_remains_cancellable_after_a_hedge(stream):
    house = House()
    house.p.plays("a", [FOREVER])
    await house.ask(stream, request())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@both
@in_no_time
async def test_the_time_that_its_media_take_to_convert_is_no_silence(stream):
    house = House(fallbacks=("b",), inputs={"a": ["text"], "b": ["text", "image"]})
    house.p.plays("b", [20, *answer("a cat")])
    wanted = request()
    image = Media(kind=MEDIA_KIND_IMAGE, data=b"x", mime_type="image/png")
    wanted.messages[0].blocks.append(Block(media=image))
    text, served, usage = await house.ask(stream, wanted)
    assert (text, served.attempts) == ("I am a", 1)
    assert list(served.adapted) == ["messages[0].blocks[1]:image-described"]
    assert [helper.model for helper in usage.helpers] == ["b"]
    assert house.asked() == [(0, "b"), (20, "a")]
    assert house.is_quiet()
