"""Streams whose events are passed to a function as they are received."""

import asyncio
import gzip
from collections.abc import Callable
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

import pytest

from services.common.errors import UpstreamError
from services.common.process.timer_wheel import TimerWheel
from services.inference.providers import idle_reader
from services.inference.providers.idle_reader import SilenceTimer
from services.inference.stream.patience import Patience
from tests.services.inference.providers.conftest import ScriptedUpstream
from tests.services.inference.providers.scripted_server import END, SSE_HEAD, Connection
from tests.services.inference.providers.upstream_calls import TextReader, reason_of, texts_of

request_id: ContextVar[str] = ContextVar("request_id")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_all_but_the_first_events_are_passed_on(here: ScriptedUpstream, size: int) -> None:
    said = b"".join(b"data: %d\n\n" % number for number in range(30)) + b"data: last\n\n"

    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: first\n\n")
        await begun.wait()
        for at in range(0, len(said), size):
            await connection.chunk(said[at : at + size])
            await asyncio.sleep(0)
        await connection.send(END)

    def take(batch: list[bytes]) -> bool:
        taken.extend(batch)
        contexts.add(request_id.get())
        return False

    here.server.plays(script)
    request_id.set("own")
    taken, contexts, begun = list[bytes](), set[str](), asyncio.Event()
    async with aclosing(texts_of(here.upstream())) as texts:
        assert await anext(texts) == [b"data: first\n\n"]
        begun.set()
        with pytest.raises(StopAsyncIteration):
            await texts.asend(take)
    assert b"".join(taken) == said
    assert contexts == {"own"}


async def test_nothing_is_passed_on_while_a_function_wants_to_wait(
    here: ScriptedUpstream,
) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        for number in range(3):
            await connection.chunk(b"data: %d\n\n" % number)
            await taken[number].wait()
        await connection.chunk(b"data: last\n\n")
        await connection.send(END)

    def take(batch: list[bytes]) -> bool:
        seen.extend(batch)
        return True

    here.server.plays(script)
    taken = [asyncio.Event() for _ in range(3)]
    seen: list[bytes] = []
    async with aclosing(texts_of(here.upstream())) as texts:
        assert await anext(texts) == [b"data: 0\n\n"]
        for number in (1, 2):
            taken[number - 1].set()
            assert await texts.asend(take) == ()
            assert seen == [b"data: %d\n\n" % one for one in range(1, number + 1)]
        taken[2].set()
        assert await texts.asend(None) == [b"data: last\n\n"]
        with pytest.raises(StopAsyncIteration):
            await texts.asend(take)
    assert here.server.connections == 1


async def test_what_a_function_raises_ends_the_stream(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: 0\n\n")
        await begun.wait()
        await connection.chunk(b"data: 1\n\n")
        await connection.until_left()

    def take(batch: list[bytes]) -> bool:
        raise ConnectionResetError("the client has left")

    here.server.plays(script)
    begun = asyncio.Event()
    texts = texts_of(here.upstream())
    await anext(texts)
    begun.set()
    with pytest.raises(ConnectionResetError, match="the client has left"):
        await texts.asend(take)
    await asyncio.wait_for(here.server.left.wait(), 60)


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        (Connection.close, "UPSTREAM_CONNECTION"),
        (Connection.reset, "UPSTREAM_CONNECTION"),
        (Connection.until_left, "UPSTREAM_TIMEOUT"),
    ],
)
async def test_a_delivered_stream_that_breaks_off_fails(
    here: ScriptedUpstream,
    ends: Callable[[Connection], Any],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def timer(timers: TimerWheel, patience: Patience, expire: Callable[[], object]) -> SilenceTimer:
        expires.append(expire)
        return SilenceTimer(timers, patience, expire)

    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: 0\n\n")
        await begun.wait()
        await connection.chunk(b"data: 1\n\n")
        await passed.wait()
        if ends is Connection.until_left:
            expires[-1]()  # only now: a short limit could be over before the event
            await connection.until_left()
        else:
            ends(connection)

    def take(batch: list[bytes]) -> bool:
        seen.extend(batch)
        passed.set()
        return False

    here.server.plays(script)
    monkeypatch.setattr(idle_reader, "SilenceTimer", timer)
    begun, passed, seen = asyncio.Event(), asyncio.Event(), list[bytes]()
    expires: list[Callable[[], object]] = []
    texts = texts_of(here.upstream())
    await anext(texts)
    begun.set()
    with pytest.raises(UpstreamError) as raised:
        await texts.asend(take)
    assert seen == [b"data: 1\n\n"]
    assert reason_of(raised.value) == reason


async def test_an_error_is_raised_after_the_events_before_it(here: ScriptedUpstream) -> None:
    class FailingReader(TextReader):
        def feed(self, text: bytes, out: list[Any]) -> None:
            super().feed(text.partition(b"data: error")[0], out)
            if b"error" in text:
                raise here_upstream.in_band(b'{"error":{"message":"no more"}}')

    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: 0\n\n")
        await begun.wait()
        await connection.chunk(b"data: 1\n\ndata: error\n\n")
        await connection.until_left()

    def take(batch: list[bytes]) -> bool:
        seen.extend(batch)
        return False

    here.server.plays(script)
    here_upstream = here.upstream()
    begun, seen = asyncio.Event(), list[bytes]()
    texts = texts_of(here_upstream, FailingReader())
    await anext(texts)
    begun.set()
    with pytest.raises(UpstreamError, match="status 500"):
        await texts.asend(take)
    assert seen == [b"data: 1\n\n"]


async def test_a_compressed_stream_is_passed_on(here: ScriptedUpstream) -> None:
    said = b"".join(b"data: %d\n\n" % number for number in range(30_000)) + b"data: last\n\n"
    packed = gzip.compress(said, mtime=0)
    head = "content-type: text/event-stream\r\ncontent-encoding: gzip"
    here.server.plays(lambda connection: connection.answer(packed, headers=head))
    taken: list[bytes] = []

    def take(batch: list[bytes]) -> bool:
        taken.extend(batch)
        return False

    async with aclosing(texts_of(here.upstream())) as texts:
        first = await anext(texts)
        with pytest.raises(StopAsyncIteration):
            await texts.asend(take)
    assert b"".join([*first, *taken]) == said


async def test_closing_a_delivered_stream_closes_its_connection(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: 0\n\n")
        await begun.wait()
        await connection.chunk(b"data: 1\n\n")
        await connection.until_left()

    def take(batch: list[bytes]) -> bool:
        passed.set()
        return False

    async def deliver() -> None:
        async with aclosing(texts_of(here.upstream())) as texts:
            await anext(texts)
            begun.set()
            await texts.asend(take)

    here.server.plays(script)
    begun, passed = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(deliver())
    await asyncio.wait_for(passed.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(here.server.left.wait(), 60)
