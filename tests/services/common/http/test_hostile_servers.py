"""Servers that send what no server should: too much, at the wrong time, or no HTTP."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable

import pytest
from yarl import URL

from services.common import http
from tests.manual_clock import ManualClock
from tests.services.common.http.servers import ask
from tests.services.inference.providers.scripted_server import (
    SSE_HEAD,
    Connection,
    ScriptedServer,
    scripted_server,
)
from tests.waiting import until

MAX_ANSWER = 1 << 20
PLAIN = b"HTTP/1.1 200 S\r\ncontent-length: 2\r\n\r\nok"


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as one:
        yield one


@pytest.fixture
async def client() -> AsyncIterator[http.Client]:
    async with http.Client(60, http.Proxies({}), max_answer_bytes=MAX_ANSWER) as one:
        yield one


def forever(head: bytes, piece: bytes) -> Callable[[Connection], object]:
    """Send a head, and then a piece again and again for as long as anybody listens."""

    async def script(connection: Connection) -> None:
        await connection.send(head)
        while True:
            await connection.send(piece * (1 + 4096 // len(piece)))

    return script


ENDLESS = {
    "a body without a length": forever(b"HTTP/1.1 200 S\r\n\r\n", b"x"),
    "chunks": forever(SSE_HEAD, b"4\r\n:\n\n\n\r\n"),
    "chunks of a byte": forever(SSE_HEAD, b"1\r\nx\r\n"),
    "chunks of a byte with long extensions": forever(
        SSE_HEAD, b"1;" + b"x" * 30_000 + b"\r\nx\r\n"
    ),
    "trailers": forever(SSE_HEAD + b"0\r\n", b"x-more: y\r\n"),
    "one trailer": forever(SSE_HEAD + b"0\r\nx-more: ", b"y"),
    "the extension of a chunk": forever(SSE_HEAD + b"1;", b"x"),
    "interim answers": forever(b"", b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n"),
    "a status line": forever(b"HTTP/1.1 200 ", b"S"),
    "one header": forever(b"HTTP/1.1 200 S\r\nx: ", b"y"),
    "headers without a value": forever(b"HTTP/1.1 200 S\r\n", b"a:\r\n"),
    "blank lines before the answer": forever(b"", b"\r\n"),
}


@pytest.mark.parametrize("script", ENDLESS.values(), ids=ENDLESS)
async def test_what_never_ends_is_left(
    client: http.Client, server: ScriptedServer, script: Callable[[Connection], object]
) -> None:
    server.plays(script)
    with pytest.raises((http.NotHttpError, http.TooLargeError)):
        await ask(client, server.url)
    await asyncio.wait_for(server.left.wait(), 60)


async def test_an_answer_of_just_the_bound_passes(server: ScriptedServer) -> None:
    body = bytes(4 << 20)
    server.plays(lambda c: c.answer(body, headers="a: b"))
    size = len(b"HTTP/1.1 200 S\r\na: b\r\ncontent-length: 4194304\r\n\r\n") + len(body)
    async with http.Client(60, http.Proxies({}), max_answer_bytes=size) as client:
        assert await ask(client, server.url) == (200, body)
    # What comes with the last read is not refused any more.
    async with http.Client(60, http.Proxies({}), max_answer_bytes=size - (1 << 20)) as client:
        with pytest.raises(http.TooLargeError):
            await ask(client, server.url)


async def test_a_packed_body_is_bounded_as_it_is_unpacked(
    client: http.Client, server: ScriptedServer
) -> None:
    bomb = gzip.compress(bytes(64 << 20))
    assert len(bomb) < MAX_ANSWER
    server.plays(lambda c: c.answer(bomb, headers="content-encoding: gzip"))
    with pytest.raises(http.TooLargeError):
        await ask(client, server.url)


NOT_PACKED = {
    "no gzip": b"hello",
    "gzip with a wrong checksum": gzip.compress(b"hello")[:-8] + bytes(8),
    "gzip that ends and goes on": gzip.compress(b"hello") + b"more",
    "zlib": zlib.compress(b"hello"),
    "a broken block": gzip.compress(b"hello")[:10] + b"\xff" * 20,
}


@pytest.mark.parametrize("body", NOT_PACKED.values(), ids=NOT_PACKED)
async def test_a_body_that_is_not_packed_as_it_says_is_refused(
    client: http.Client, server: ScriptedServer, body: bytes
) -> None:
    async def script(connection: Connection) -> None:
        for byte in (
            b"HTTP/1.1 200 S\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body),
            *(body[place : place + 1] for place in range(len(body))),
        ):
            await connection.send(byte)

    server.plays(script)
    with pytest.raises(http.NotHttpError):
        await ask(client, server.url)


NO_HTTP = {
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a switch of protocols": b"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello",
    "a request": b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a status of letters": b"HTTP/1.1 abc S\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 S\r\n\r\n",
    "a length of letters": b"HTTP/1.1 200 S\r\ncontent-length: x\r\n\r\n",
    "a length beyond 64 bits": b"HTTP/1.1 200 S\r\ncontent-length: 99999999999999999999\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 S\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "a length and chunks": b"HTTP/1.1 200 S\r\ncontent-length: 1\r\n"
    b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk size of letters": SSE_HEAD + b"xyz\r\n",
    "a chunk size beyond 64 bits": SSE_HEAD + b"ffffffffffffffffff\r\n",
    "a chunk that is longer than it says": SSE_HEAD + b"1\r\nabc\r\n",
    "a header without a name": b"HTTP/1.1 200 S\r\n: x\r\n\r\n",
    "a NUL in a header": b"HTTP/1.1 200 S\r\nx: a\0b\r\n\r\n",
}


@pytest.mark.parametrize("answer", NO_HTTP.values(), ids=NO_HTTP)
async def test_what_is_no_http_is_refused(
    client: http.Client, server: ScriptedServer, answer: bytes
) -> None:
    server.plays(lambda c: c.send(answer))
    with pytest.raises(http.NotHttpError):
        await ask(client, server.url)


async def test_a_second_answer_never_reaches_the_next_caller(server: ScriptedServer) -> None:
    turns = sent = 0
    asked_again = asyncio.Event()

    async def script(connection: Connection) -> None:
        nonlocal sent
        await connection.answer(b"first")
        await asked_again.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        await connection.answer(b"second")
        sent += 1

    server.plays(script)
    clock = ManualClock()
    async with http.Client(60, http.Proxies({}), monotonic=clock.monotonic) as client:
        for step in range(20):
            turns = step
            asked_again.clear()
            # The second answer may still come, and then it has come.
            for _ in range(2):
                assert await ask(client, server.url) == (200, b"first")
            asked_again.set()
            await until(lambda: sent == server.connections)
            clock.now_s += 1
    assert server.connections == 40


@pytest.mark.parametrize("beside", [b"\0", b"HTTP/1.1 200 S\r\n", b"\r\n\r\nx"])
async def test_surplus_bytes_prevent_reuse_of_a_connection(
    server: ScriptedServer, beside: bytes
) -> None:
    server.plays(lambda c: c.send(PLAIN + beside))
    async with http.Client(60, http.Proxies({}), settle_s=0) as client:
        for _ in range(2):
            assert await ask(client, server.url) == (200, b"ok")
    assert server.connections == 2


@pytest.mark.parametrize("is_told", [False, True])
async def test_an_answer_behind_the_end_of_another_is_noticed(
    server: ScriptedServer, is_told: bool
) -> None:
    """Bytes that wait in the socket are seen, and those that came while it was being read."""
    server.plays(lambda c: c.answer(b"mine"))
    async with http.Client(60, http.Proxies({}), settle_s=0) as client:
        url = URL(server.url)
        response = await client.send(http.origin_of(url), "POST", url.raw_path_qs, "")
        while await response.body.read():
            pass
        [writer] = server.writers
        writer.write(b"\r\n")
        assert writer.transport.get_write_buffer_size() == 0
        for _ in range(10 * is_told):  # turns of the loop in which the client hears of it
            await asyncio.sleep(0)
        response.body.release()
        assert await ask(client, server.url) == (200, b"mine")
    assert server.connections == 2


async def test_idle_connections_are_closed_after_a_time(server: ScriptedServer) -> None:
    server.plays(lambda c: c.answer(b"{}"))
    async with http.Client(60, http.Proxies({}), idle_s=0.05) as client:
        await ask(client, server.url)
        await asyncio.wait_for(server.left.wait(), 60)


async def test_so_many_idle_connections_are_kept(server: ScriptedServer) -> None:
    together = asyncio.Barrier(5)

    async def script(connection: Connection) -> None:
        await together.wait()
        await connection.answer(b"{}")

    server.plays(script)
    async with http.Client(60, http.Proxies({}), max_idle=2) as client:
        await asyncio.gather(*(ask(client, server.url) for _ in range(5)))
        await until(lambda: len(server.writers) == 2)
