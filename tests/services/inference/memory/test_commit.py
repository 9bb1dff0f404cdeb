"""Answers whose callers leave, and shutdown while answers are read."""

import asyncio
from contextlib import aclosing

import pytest

from gateway.inference.v1.inference_pb2 import Event
from tests.services.inference.fallback.scripted_engine import (
    DISABLED,
    FOREVER,
    ScriptedEngine,
    ending,
    opening,
    start,
    text_of,
)
from tests.services.inference.fallback.virtual_time import in_no_time
from tests.services.inference.memory.builders import (
    request,
    texts,
    user,
)


def committed(scripted: ScriptedEngine) -> list[list[str]]:
    """Return what was committed of each turn; none of them is held any more."""
    assert not any(turn.is_held for turn in scripted.memories.turns)
    return [texts(turn.answers) for turn in scripted.memories.turns]


@in_no_time
async def test_answer_is_committed_after_its_caller_leaves() -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", [[start(), *opening("I")], 100, [Event(text=" am")], ending()])
    async with aclosing(await scripted.engine.stream(request(user("Hi")))) as batches:
        assert text_of(await anext(batches)) == "I"
    assert scripted.memories.turns[0].is_held
    await scripted.memories.ended.acquire()
    assert committed(scripted) == [["I am"]]
    assert scripted.is_quiet()


@in_no_time
async def test_answer_is_committed_after_its_task_is_cancelled() -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", [[start(), *opening("I")], 100, ending()])
    begun = asyncio.Event()

    async def listen() -> None:
        async for _ in await scripted.engine.stream(request(user("Hi"))):
            begun.set()

    listening = asyncio.create_task(listen())
    await begun.wait()
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    await scripted.memories.ended.acquire()
    assert committed(scripted) == [["I"]]


@in_no_time
async def test_abandoned_answer_is_cancelled_after_leave_drain_s() -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", [[start(), *opening("I")], FOREVER])
    async with aclosing(await scripted.engine.stream(request(user("Hi")))) as batches:
        await anext(batches)
        left = asyncio.get_running_loop().time()
    await scripted.memories.ended.acquire()
    assert asyncio.get_running_loop().time() - left == pytest.approx(120)
    assert committed(scripted) == [[]]
    assert scripted.is_quiet()


@in_no_time
async def test_unread_answer_is_committed_after_its_caller_leaves() -> None:
    scripted = ScriptedEngine()
    more = [[Event(text=".")] for _ in range(5)]
    scripted.p.plays("a", [[start(), *opening("I")], *more, ending()])
    async with aclosing(await scripted.engine.stream(request(user("Hi")))) as batches:
        await anext(batches)
        # The provider is held up by now.
        await asyncio.sleep(1)
    await scripted.memories.ended.acquire()
    assert committed(scripted) == [["I....."]]
    assert asyncio.get_running_loop().time() < 2


@in_no_time
async def test_caller_leaving_before_content_cancels_the_request() -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", [[start()], FOREVER])
    for stream in (False, True):
        asking = asyncio.create_task(scripted.ask(stream, request(user("Hi"), fallback=DISABLED)))
        await asyncio.sleep(1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await scripted.memories.ended.acquire()
        assert scripted.is_quiet()
    assert committed(scripted) == [[], []]
    assert asyncio.get_running_loop().time() < 3


@in_no_time
async def test_slow_reader_applies_backpressure_to_the_provider() -> None:
    scripted = ScriptedEngine()
    sent = 0

    async def script():
        nonlocal sent
        yield [start(), *opening("I")]
        for _ in range(50):
            sent += 1
            yield [Event(text=".")]
        yield ending()

    scripted.p.stream = lambda call: script()
    async with aclosing(await scripted.engine.stream(request(user("Hi")))) as batches:
        await anext(batches)
        await asyncio.sleep(10)
        assert sent < 5
        assert text_of([event async for batch in batches for event in batch]) == "." * 50
    assert committed(scripted) == [["I" + "." * 50]]


@in_no_time
async def test_drain_waits_for_abandoned_answers() -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", [[start(), *opening("I")], 10, ending()])
    async with aclosing(await scripted.engine.stream(request(user("Hi")))) as batches:
        await anext(batches)
    await scripted.engine.drain(30)
    assert committed(scripted) == [["I"]]
    await scripted.engine.drain(0)


@in_no_time
async def test_drain_cancels_answers_that_take_too_long() -> None:
    scripted = ScriptedEngine()
    scripted.p.plays("a", [[start(), *opening("I")], FOREVER])
    async with aclosing(await scripted.engine.stream(request(user("Hi")))) as batches:
        await anext(batches)
    await scripted.engine.drain(30)
    assert committed(scripted) == [[]]
    assert scripted.is_quiet()
