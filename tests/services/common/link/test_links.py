"""What only a link has: it breaks, it goes away, and what it holds is bounded."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from gateway.link.v1.link_pb2 import OpenRequest
from gateway.link.v1.link_pb2_grpc import LinkStub
from services.common.link import frames, server, session
from services.common.link.frames import WINDOW
from tests.services.common.link.carriers import (
    MIB,
    echo,
    everything,
    outcome,
    served,
    soon,
)
from tests.waiting import until

CODE = grpc.StatusCode
KIB = 1 << 10
OPEN = frames.open_call(1, b"/test.T/Unary", b"", None, one_message=True)
MESSAGE = frames.message_header(1, 6, 6) + b"secret"


# Connections that break.


@asynccontextmanager
async def cuttable(port: int) -> AsyncIterator:
    """Stand between a channel and a server; give the address, and what cuts all connections."""
    open_now = set()

    async def copy(reader, writer):
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def accept(reader, writer):
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        open_now.update((writer, there_writer))
        await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer))

    def cut():
        for writer in open_now:
            writer.transport.abort()
        open_now.clear()

    between = await asyncio.start_server(accept, "127.0.0.1", 0)
    yield f"127.0.0.1:{between.sockets[0].getsockname()[1]}", cut
    cut()
    between.close()
    await between.wait_closed()


async def test_a_link_that_breaks_fails_its_calls_and_the_next_ones_take_another(link):
    began, ended = asyncio.Semaphore(0), asyncio.Semaphore(0)
    runs = []

    async def down(request, context):
        runs.append(request)
        began.release()
        try:
            yield b"a"
            await asyncio.Event().wait()
        finally:
            ended.release()

    async with served(link, down=down, unary=echo) as at, cuttable(at.port) as (address, cut):
        async with link.channel(address) as channel:
            unary = channel.unary_unary("/test.T/Unary")
            for _ in range(3):
                calls = [channel.unary_stream("/test.T/Down")(b"") for _ in range(20)]
                for _ in calls:
                    await soon(began.acquire())
                cut()
                for call in calls:
                    with pytest.raises(grpc.aio.AioRpcError) as broken:
                        await everything(call)
                    assert broken.value.code() is CODE.UNAVAILABLE
                for _ in calls:
                    await soon(ended.acquire())
                assert await soon(unary(b"x", wait_for_ready=True)) == b"x"
    assert len(runs) == 60


# Bounds.


async def test_a_reader_that_stops_lets_little_be_made_for_it(link):
    made = []

    async def down(request, context):
        while True:
            made.append(1)
            yield b"x" * 1000

    async with served(link, down=down, unary=echo) as at:
        call = at.down(b"")
        await soon(call.read())
        before = 0
        while before != len(made):
            before = len(made)
            for _ in range(20):
                await soon(at.unary(b""))
        assert len(made) * 1000 < 2 * WINDOW
        call.cancel()


async def test_calls_beyond_those_a_link_takes_are_refused(link, monkeypatch):
    monkeypatch.setattr(session, "MAX_CALLS", 5)
    go_on = asyncio.Event()

    async def unary(request, context):
        await go_on.wait()
        return b"done"

    async with served(link, unary=unary) as at:
        calls = [at.unary(b"") for _ in range(5)]
        assert (await outcome(at.unary(b"")))[0] is CODE.UNAVAILABLE
        go_on.set()
        assert await soon(asyncio.gather(*calls)) == [b"done"] * 5
        assert await soon(at.unary(b"")) == b"done"


async def test_links_beyond_those_a_server_takes_are_refused(link, monkeypatch):
    monkeypatch.setattr(server, "MAX_LINKS", 1)
    async with served(link, unary=echo) as at:
        assert await soon(at.unary(b"")) == b""
        async with link.channel(f"127.0.0.1:{at.port}") as second:
            unary = second.unary_unary("/test.T/Unary")
            assert (await outcome(unary(b"")))[0] is CODE.UNAVAILABLE
            patient = unary(b"", wait_for_ready=True)
            await at.channel.close()
            assert await soon(patient) == b""


async def test_a_server_refuses_what_it_cannot_hold_for_servicers_that_do_not_read(
    link, monkeypatch
):
    monkeypatch.setattr(session, "_MAX_UNREAD", MIB)
    go_on = asyncio.Event()
    link.max_message = 100 * KIB

    async def up(requests, context):
        await go_on.wait()
        return b"%d" % sum([len(request) async for request in requests])

    async with served(link, up=up, unary=echo) as at:
        calls = [at.up([b"x" * (90 * KIB)] * 2) for _ in range(20)]
        await until(lambda: any(call.done() for call in calls))
        assert await soon(at.unary(b"x")) == b"x"
        go_on.set()
        answers = await soon(asyncio.gather(*calls, return_exceptions=True))
    taken = [answer for answer in answers if isinstance(answer, bytes)]
    refused = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
    assert taken == [b"%d" % (180 * KIB)] * len(taken)
    assert {error.code() for error in refused} == {CODE.UNAVAILABLE}
    assert taken and len(taken) + len(refused) == 20


# Going away.


async def test_a_link_that_goes_away_takes_its_calls_to_their_end(link):
    go_on, began = asyncio.Event(), asyncio.Event()

    async def up(requests, context):
        began.set()
        await go_on.wait()
        return b",".join([request async for request in requests])

    async with served(link, up=up, unary=echo) as at:
        call = at.up()
        await call.write(b"a")
        await soon(began.wait())
        assert len(link.links._sessions) == 1
        (old,) = link.links._sessions
        link.links.go_away()
        await until(lambda: at.channel._connection is None)
        assert await soon(at.unary(b"new")) == b"new"
        assert len(link.links._sessions) == 2
        go_on.set()
        await call.write(b"b")
        await call.done_writing()
        assert await soon(call) == b"a,b"
        await until(lambda: old not in link.links._sessions)
        assert await soon(at.unary(b"new")) == b"new"


async def test_a_call_that_comes_after_the_link_went_away_is_refused(link):
    async with served(link, unary=echo) as at:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{at.port}") as channel:
            stream = LinkStub(channel).Open()
            await soon(stream.initial_metadata())
            link.links.go_away()
            assert (await soon(stream.read())).frames == frames.bare(0, frames.GOAWAY)
            await soon(stream.write(OpenRequest(frames=OPEN + MESSAGE)))
            answer = (await soon(stream.read())).frames
            ((number, kind, begin, stop),) = frames.scan(answer)
            assert (number, kind) == (1, frames.STATUS)
            assert frames.read_status(answer, begin, stop)[0] == CODE.UNAVAILABLE.value[0]


async def test_calls_take_another_link_when_the_numbers_of_one_are_used_up(link, monkeypatch):
    monkeypatch.setattr(frames, "MAX_CALL", 3)
    async with served(link, unary=echo) as at:
        for number in range(10):
            assert await soon(at.unary(b"%d" % number)) == b"%d" % number
        await until(lambda: len(link.links._sessions) == 1)


async def test_a_link_belongs_to_no_call(link):
    from contextvars import ContextVar

    mine: ContextVar[str] = ContextVar("mine", default="")
    seen = []

    async with served(link, unary=echo) as at:
        mine.set("the first caller's")
        call = at.unary(b"")
        call.add_done_callback(lambda _: seen.append(mine.get()))
        await soon(call)
    assert seen == [""]


async def test_a_callback_that_fails_harms_no_other_call(link, caplog):
    def fail(call):
        raise ValueError("odd")

    async with served(link, unary=echo) as at:
        calls = [at.unary(b"%d" % number) for number in range(10)]
        calls[3].add_done_callback(fail)
        assert await soon(asyncio.gather(*calls)) == [b"%d" % number for number in range(10)]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
