"""One connection to a server: a request goes out, its answer is read as it comes."""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from typing import cast

import httptools
from multidict import CIMultiDict, CIMultiDictProxy

from services.inference.http.bodies import Unpacker
from services.inference.http.errors import (
    ConnectionBrokenError,
    CutOffError,
    HttpError,
    NotHttpError,
)

# A stream's events are in memory together from their reading until its caller has read the last
# of them, at some ten times their size, and so is all that has been read ahead. With many
# streams whose callers read slowly that counts for more than the time of larger reads.
# Bytes of an answer that wait for their reader before the server is let wait.
_READ_AHEAD = 8 << 10
# Bytes of an answer that are read at once.
_AT_ONCE = 8 << 10
_MAX_HEAD = 64 << 10
# What the event loop reads into, for every connection in turn.
_BUFFER = memoryview(bytearray(16 << 10))


class Response:
    """The answer to one request; a body that is not read to its end must be closed.

    Attributes:
        status: the HTTP status.
        headers: names in any case; of those that repeat all are there.
    """

    def __init__(
        self, connection: "Connection", status: int, headers: CIMultiDictProxy[str]
    ) -> None:
        self.status = status
        self.headers = headers
        self._connection = connection
        encoding = headers.get("content-encoding", "identity").lower()
        self._unpacker = None if encoding in ("identity", "") else Unpacker(encoding)
        self._unpacked: Iterator[bytes] = iter(())

    async def read(self) -> bytes:
        """Give what has come of the body, at least a byte; b"" at its end.

        Raises:
            CutOffError: the connection ended before it.
            NotHttpError: what came does not follow the rules of HTTP.
        """
        unpacker = self._unpacker
        if unpacker is None:
            return await self._connection.read()
        while True:
            if part := next(self._unpacked, b""):
                return part
            piece = await self._connection.read()
            if not piece:
                if not unpacker.is_whole:
                    raise CutOffError
                return b""
            self._unpacked = unpacker.feed(piece)

    def break_off(self) -> None:
        """Have no more come: who waits in `read` is told that the connection ended."""
        self._connection.close()

    def close(self) -> None:
        """Have done with the answer; a connection in the middle of it is of no more use."""
        self._connection.leave()


class Connection(asyncio.BufferedProtocol):
    """A connection, used by one request at a time.

    Args:
        released: is called when a request has had its whole answer and the server keeps
            the connection open: another may follow.
        lost: is called when the connection is gone.

    Attributes:
        is_usable: whether a request may be sent.
        idle_since: when it was released, by the clock of whoever keeps it.
    """

    def __init__(
        self,
        released: Callable[["Connection"], None],
        lost: Callable[["Connection"], None],
    ) -> None:
        self.is_usable = True
        self.idle_since = 0.0
        self._released = released
        self._lost = lost
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._busy = False
        self._failure: HttpError | None = None
        self._begin()

    def _begin(self) -> None:
        self._headers: CIMultiDict[str] = CIMultiDict()
        self._head_size = 0
        self._has_head = self._is_complete = self._ends_with_connection = self._stays = False
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._is_paused = False

    async def request(self, data: bytes, body: bytes) -> Response:
        """Send a head and a body; give the answer with its body unread.

        Raises:
            HttpError: none came, or nothing that is HTTP.
        """
        self._busy = True
        self._begin()
        if len(body) <= _READ_AHEAD:
            self._transport.write(data + body)
        else:
            self._transport.write(data)
            self._transport.write(body)
        while not self._has_head:
            if self._failure is not None:
                raise self._failure
            await self._change()
        return Response(self, self._parser.get_status_code(), CIMultiDictProxy(self._headers))

    async def open_tunnel(self, head: bytes, tls: ssl.SSLContext, host: str) -> None:
        """Ask a proxy for a way to a server, and begin TLS with the server on it.

        Raises:
            HttpError: the proxy does not give one.
            OSError: TLS does not come about.
        """
        response = await self.request(head, b"")
        if not 200 <= response.status < 300:
            raise ConnectionBrokenError
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(self._transport, self, tls, server_hostname=host)
        if transport is None:
            raise ConnectionBrokenError
        self._transport = transport
        self._parser = httptools.HttpResponseParser(self)

    async def read(self) -> bytes:
        """Give what has come of the body, b"" at its end; see `Response.read`."""
        while not self._pieces:
            if self._is_complete:
                return b""
            if self._failure is not None:
                raise self._failure
            await self._change()
        if len(self._pieces) == 1:
            data = self._pieces.popleft()
        else:
            data = b"".join(self._pieces)
            self._pieces.clear()
        if len(data) > _AT_ONCE:
            self._pieces.append(data[_AT_ONCE:])
            data = data[:_AT_ONCE]
        self._size -= len(data)
        if self._is_paused and not self._pieces:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def leave(self) -> None:
        """Have done with the request: give the connection back, or close it."""
        if not self._busy:
            return
        self._busy = False
        # A server that answers before it has read all may take the rest for a request.
        sent = not self._transport.get_write_buffer_size()
        if self._is_complete and self._stays and self.is_usable and sent:
            self._pieces.clear()
            self._size = 0
            self._released(self)
        else:
            self.close()

    def close(self) -> None:
        """Close it at once, whatever it is doing."""
        self.is_usable = False
        self._transport.abort()

    def close_idle(self) -> None:
        """Close it as one does who has nothing more to say."""
        self.is_usable = False
        self._transport.close()

    def _change(self) -> asyncio.Future[None]:
        """Give what is done when anything has changed; one waits at a time."""
        self._waiter = self._loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: HttpError) -> None:
        self.is_usable = False
        if self._failure is None:
            self._failure = error
        self._wake()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, a new one where TLS begins within the connection."""
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that the event loop reads into."""
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Take what has come."""
        self.data_received(_BUFFER[:nbytes].tobytes())

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        if not self._busy:
            self.close()  # nobody has asked
            return
        if not self._has_head:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not self._is_complete:
                self._fail(NotHttpError())
                self._transport.abort()
            self.is_usable = False
        else:
            if not self._has_head and self._head_size > _MAX_HEAD:
                self._fail(NotHttpError())
                self._transport.abort()
        if self._size > _READ_AHEAD and not self._is_paused and not self._is_complete:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """Have nothing more to come; what was to be sent is of no more use either."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Be gone."""
        if self._has_head and self._ends_with_connection and error is None:
            self._is_complete = True
        self._fail(CutOffError() if self._has_head else ConnectionBrokenError())
        self._lost(self)

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Begin an answer; one that follows another was not asked for."""
        if self._is_complete:
            self.is_usable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a line of the head."""
        if not self._is_complete:
            self._headers.add(name.decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        """Have the head, unless it is that of an interim answer."""
        if self._is_complete:
            return
        if 100 <= self._parser.get_status_code() < 200:
            self._headers.clear()
            return
        self._has_head = True
        coding = self._headers.get("transfer-encoding", "").lower()
        self._ends_with_connection = "content-length" not in self._headers and not coding.endswith(
            "chunked"
        )

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        if not self._is_complete:
            self._pieces.append(piece)
            self._size += len(piece)

    def on_message_complete(self) -> None:
        """Have the whole answer, unless it is an interim one."""
        self._is_complete = self._has_head
        # The parser knows it now, and forgets it with what comes next.
        self._stays = self._parser.should_keep_alive()
