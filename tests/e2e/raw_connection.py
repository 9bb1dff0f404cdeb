"""A client that costs little: one keep-alive connection, one request at a time."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

_MAX_HEAD = 1 << 16


class RawAnswer(NamedTuple):
    """The answer to one request."""

    status: int
    body: bytes


class RawConnection:
    """A connection to a port of the loopback address, which is opened again where it was closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, request: bytes) -> RawAnswer:
        """Send a whole HTTP request; return the whole answer."""
        reader = await self._begin(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"\r\ntransfer-encoding: chunked\r\n" in head:
            body = b"".join([chunk async for chunk in _chunks(reader)])
        else:
            _, _, after_length = head.partition(b"\r\ncontent-length: ")
            body = await reader.readexactly(int(after_length.partition(b"\r\n")[0] or 0))
        if b"\r\nconnection: close\r\n" in head:
            self.close()
        return RawAnswer(int(head[9:12]), body)

    async def leave(self, request: bytes, after: bytes = b"") -> None:
        """Send a request, and break the connection; first wait for some bytes of the answer."""
        reader = await self._begin(request)
        if after:
            await reader.readuntil(after)
        self.close()

    def close(self) -> None:
        """Break the connection."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    async def _begin(self, request: bytes) -> asyncio.StreamReader:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(
                "127.0.0.1", self._port, limit=_MAX_HEAD
            )
        self._writer.write(request)
        return self._reader


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        content = await reader.readexactly(size + 2)
        if not size:
            return
        yield content[:-2]
