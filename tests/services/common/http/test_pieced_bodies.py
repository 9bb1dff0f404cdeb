"""Request bodies that are made while they are sent."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from services.common import http
from tests.services.common.http.servers import ask, serving
from tests.services.inference.providers.scripted_server import ScriptedServer
from tests.waiting import until

PIECE = b"x" * (1 << 18)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Pieces:
    """A body of equal pieces; `made` is how many were asked for."""

    def __init__(self, count: int, fails_at: int = -1) -> None:
        self.size = count * len(PIECE)
        self.made = 0
        self.closed = False
        self._count = count
        self._fails_at = fails_at

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        try:
            for number in range(self._count):
                if number == self._fails_at:
                    raise LookupError("the store is gone")
                self.made += 1
                yield PIECE
        finally:
            self.closed = True


async def test_a_pieced_body_arrives_as_a_whole(
    client: http.Client, server: ScriptedServer
) -> None:
    server.plays(lambda connection: connection.answer(b"ok"))
    assert await ask(client, server.url, Pieces(20)) == (200, b"ok")
    assert await ask(client, server.url, b"{}") == (200, b"ok")
    assert [len(one.body) for one in server.requests] == [20 * len(PIECE), 2]
    assert server.connections == 1


async def test_pieces_are_made_as_fast_as_the_server_reads(client: http.Client) -> None:
    may_read = asyncio.Event()
    body = Pieces(400)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"content-length: %d\r\n" % body.size in head
        await may_read.wait()
        await reader.readexactly(body.size)
        writer.write(OK)

    async with serving(handle) as port:
        asking = asyncio.create_task(ask(client, f"http://127.0.0.1:{port}/", body))
        await until(lambda: body.made > 0, within_s=60)
        made = -1
        while body.made != made:  # until nothing more is made
            made = body.made
            for _ in range(1000):
                await asyncio.sleep(0)
        assert made < 100  # what the buffers of the kernel hold
        may_read.set()
        assert await asking == (200, b"ok")
        await client.close()


async def test_an_early_answer_ends_the_request(client: http.Client) -> None:
    body = Pieces(400)
    requests = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        requests += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 No\r\ncontent-length: 2\r\n\r\nno")
        while await reader.read(1 << 16):  # until the client leaves
            if body.closed:
                return

    async with serving(handle) as port:
        address = f"http://127.0.0.1:{port}/"
        assert await ask(client, address, body) == (413, b"no")
        assert body.closed and body.made < 400
        # The rest of the request was not sent: the connection is not used again.
        other = Pieces(1)
        assert (await ask(client, address, other))[0] == 413
        assert requests == 2
        await client.close()


async def test_a_body_that_fails_closes_the_connection(client: http.Client) -> None:
    ended = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1 << 16):
            pass
        ended.set()

    async with serving(handle) as port:
        with pytest.raises(LookupError):
            await ask(client, f"http://127.0.0.1:{port}/", Pieces(20, fails_at=3))
        await ended.wait()
        await client.close()


async def test_a_caller_who_leaves_ends_the_body(client: http.Client) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await left.wait()

    left = asyncio.Event()
    body = Pieces(400)
    async with serving(handle) as port:
        asking = asyncio.create_task(ask(client, f"http://127.0.0.1:{port}/", body))
        await until(lambda: body.made > 0, within_s=60)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert body.closed
        left.set()
        await client.close()
