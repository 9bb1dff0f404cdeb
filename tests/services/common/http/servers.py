"""Servers of a few lines, and how the client under test asks them."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from yarl import URL

from services.common import http

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def ask(
    client: http.Client, address: str, body: bytes | http.PiecedBody = b"{}"
) -> tuple[int, bytes]:
    """Post; give status and body, the connection given back."""
    url = URL(address)
    response = await client.send(http.origin_of(url), "POST", url.raw_path_qs, "", body)
    try:
        pieces = []
        while piece := await response.body.read():
            pieces.append(piece)
        return response.status, b"".join(pieces)
    finally:
        response.body.release()


@asynccontextmanager
async def serving(handle: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve each connection with a handler, and close it; give the port.

    At the end, when the clients have left, every handler is waited for.
    """
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await handle(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*tasks)


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read all there is, and answer nothing."""
    while await reader.read(1 << 16):
        pass
