"""Streams of a provider: events, silence, and their ends."""

import asyncio
import gc
from contextlib import aclosing

import pytest

from services.common.errors import UpstreamError
from services.common.http import Client
from services.inference.providers import event_stream
from services.inference.providers.idle_reader import IdleTimeoutReader
from tests.services.inference.providers.scripted_server import (
    END,
    SSE_HEAD,
    Connection,
    ScriptedUpstream,
    scripted_upstream,
)
from tests.services.inference.providers.upstream_calls import (
    TextReader,
    failure,
    reason_of,
    streamed,
    texts_of,
)


async def test_a_late_stream_end_releases_the_connection(
    here: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "_ENDING_GRACE_S", 60.0)
    seen = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: last\n\n")
        await seen.wait()
        await connection.send(END)

    here.server.plays(script)
    for _ in range(2):
        seen.clear()
        async for _text in texts_of(here.upstream(), TextReader(ended=True)):
            seen.set()
    assert here.server.connections == 1


@pytest.mark.parametrize("beside", [b"\n", b":\n", b": a\n\n", b"\r\n", b"id: 1\n\n"])
async def test_a_stream_without_events_is_left(beside: bytes) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        while True:
            await connection.chunk(beside * (65536 // len(beside)))

    async with scripted_upstream(Client(60, max_answer_bytes=1 << 20)) as here:
        here.server.plays(script)
        error = await failure(here.upstream(), stream=True)
        assert error.limit == "limits.max_answer_bytes"


async def test_a_large_read_lets_others_have_their_turn() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: x\n\n" * 100_000 + b"data: last\n\n")
        await connection.send(END)

    between: list[int] = []
    async with scripted_upstream() as here:
        here.server.plays(script)
        async with aclosing(texts_of(here.upstream())) as texts:
            counting = asyncio.create_task(count())
            async for (text,) in texts:
                assert len(text) <= (64 << 10) + len(b"data: x\n\n")
                between.append(turns)
            counting.cancel()
    assert all(one < next_but_one for one, next_but_one in zip(between, between[2:], strict=False))


@pytest.mark.parametrize("first", [b": wait\n\n", b"data: role\n\n"])
async def test_silence_before_first_content_is_the_caller_s_to_bound(
    here: ScriptedUpstream, first: bytes
) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(first)
        silent.set()
        await connection.until_left()

    here.server.plays(script)
    silent = asyncio.Event()
    call = asyncio.ensure_future(streamed(here.upstream(step_timeout_s=0.01, stream_idle_s=0.01)))
    await silent.wait()
    await asyncio.wait([call], timeout=0.05)
    assert not call.done()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(here.server.left.wait(), 60)


async def test_silence_within_a_stream_ends_at_the_idle_limit(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: a\n\n")
        await connection.until_left()

    here.server.plays(script)
    seen: list[bytes] = []
    began = asyncio.get_running_loop().time()
    with pytest.raises(UpstreamError) as raised:
        # The limit holds from the first content on: no pause before it counts.
        async for (text,) in texts_of(here.upstream(stream_idle_s=0.05)):
            seen.append(text)
    assert (seen, reason_of(raised.value)) == ([b"data: a\n\n"], "UPSTREAM_TIMEOUT")
    assert asyncio.get_running_loop().time() - began < 30
    await asyncio.wait_for(here.server.left.wait(), 60)


async def test_a_complete_answer_is_waited_for_less_long(
    here: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: a\n\n")
        await seen.wait()
        await connection.chunk(b"data: end\n\n")
        await connection.until_left()

    monkeypatch.setattr(event_stream, "_USAGE_S", 0.05)
    here.server.plays(script)
    seen = asyncio.Event()
    reader = TextReader(has_content=True)
    texts = texts_of(here.upstream(stream_idle_s=600), reader)
    assert await anext(texts) == [b"data: a\n\n"]
    seen.set()
    assert await anext(texts) == [b"data: end\n\n"]
    reader.is_complete = True
    with pytest.raises(StopAsyncIteration):  # a failure behind a complete answer is none
        async with asyncio.timeout(60):
            await anext(texts)


async def test_all_events_of_one_read_are_one_batch(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD + b"1b\r\ndata: 1\n\ndata: 2\n\ndata: 3\n\n\r\n" + END)

    here.server.plays(script)
    assert await streamed(here.upstream()) == [[b"1", b"2", b"3"]]


async def test_the_last_event_ends_a_stream_left_open(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: 1\n\ndata: last\n\n")
        await connection.until_left()

    here.server.plays(script)
    assert [data for batch in await streamed(here.upstream()) for data in batch] == [b"1", b"last"]
    await asyncio.wait_for(here.server.left.wait(), 60)


async def test_a_stream_that_the_server_ends_early_just_ends(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: 1\n\ndata: 2")
        await connection.send(END)

    here.server.plays(script)
    assert await streamed(here.upstream()) == [[b"1"]]


@pytest.mark.parametrize("sent", [b"", b"8\r\n: wait\n\n\r\n"])
async def test_a_stream_of_no_event_just_ends(here: ScriptedUpstream, sent: bytes) -> None:
    here.server.plays(lambda c: c.send(SSE_HEAD + sent + END))
    assert await streamed(here.upstream()) == []


async def test_an_answer_that_is_no_event_stream_is_a_failure(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(b"<p>Hi</p>", headers="content-type: text/html"))
    assert reason_of(await failure(here.upstream(), stream=True)) == "UPSTREAM_ERROR"


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
async def test_a_whole_answer_may_come_for_a_stream(here: ScriptedUpstream, kind: str) -> None:
    here.server.plays(lambda c: c.answer(b'{"a": 1}', headers=f"content-type: {kind}"))
    assert [batch async for batch in texts_of(here.upstream())] == [[{"a": 1}]]
    # Read to its end, so that its connection serves the next call.
    assert [batch async for batch in texts_of(here.upstream())] == [[{"a": 1}]]
    assert here.server.connections == 1


@pytest.mark.parametrize("sent", [b'{"error": {"message": "no"}}', b"[]", b"", b"{"])
async def test_a_whole_answer_for_a_stream_may_fail(here: ScriptedUpstream, sent: bytes) -> None:
    here.server.plays(lambda c: c.answer(sent))
    assert reason_of(await failure(here.upstream(), stream=True)) == "UPSTREAM_ERROR"


@pytest.mark.parametrize("kind", ["text/plain; charset=utf-8", "application/octet-stream"])
async def test_an_event_stream_of_a_general_type_is_one(here: ScriptedUpstream, kind: str) -> None:
    here.server.plays(lambda c: c.answer(b"data: 1\n\n", headers=f"content-type: {kind}"))
    assert await streamed(here.upstream()) == [[b"1"]]


async def test_an_event_stream_without_a_content_type_is_taken_as_one(
    here: ScriptedUpstream,
) -> None:
    here.server.plays(lambda c: c.answer(b"data: 1\n\n", headers="x: y"))
    assert await streamed(here.upstream()) == [[b"1"]]


async def test_an_event_of_16_mb_passes(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: " + b"x" * (16 << 20) + b"\n\n")
        await connection.send(END)

    here.server.plays(script)
    [[data]] = await streamed(here.upstream())
    assert len(data) == 16 << 20


async def test_an_oversized_event_closes_the_connection(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: " + b"x" * (1 << 17))
        await connection.until_left()

    here.server.plays(script)
    upstream = here.upstream(max_sse_line_bytes=1 << 16)
    assert reason_of(await failure(upstream, stream=True)) == "UPSTREAM_ERROR"
    await asyncio.wait_for(here.server.left.wait(), 60)


async def test_closing_a_stream_midway_closes_its_connection(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: a\n\n")
        await connection.until_left()

    here.server.plays(script)
    texts = texts_of(here.upstream())
    assert await anext(texts) == [b"data: a\n\n"]
    assert here.live.count == 1
    await texts.aclose()
    assert here.live.count == 0
    await asyncio.wait_for(here.server.left.wait(), 60)


def readers() -> int:
    """Count the readers that something holds, such as a timer."""
    gc.collect()
    return sum(type(one) is IdleTimeoutReader for one in gc.get_objects())


async def test_many_aborted_streams_leave_nothing_behind(here: ScriptedUpstream) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(b"data: a\n\n")
        await connection.until_left()

    here.server.plays(script)
    upstream = here.upstream()

    async def begin_and_leave() -> None:
        texts = texts_of(upstream)
        async with aclosing(texts):
            await anext(texts)

    before = readers()
    await asyncio.gather(*(begin_and_leave() for _ in range(100)))
    assert (here.live.count, here.server.connections) == (0, 100)
    assert readers() == before
