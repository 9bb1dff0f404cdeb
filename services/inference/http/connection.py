"""One connection to a server: a request goes out, its answer is read as it comes."""

import asyncio
import select
import ssl
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from functools import lru_cache
from typing import Any, cast

import httptools
from multidict import CIMultiDict, CIMultiDictProxy

from services.inference.http.bodies import Unpacker
from services.inference.http.errors import (
    ConnectionBrokenError,
    CutOffError,
    HttpError,
    NotHttpError,
    TooLargeError,
)

# Bytes in a row that are no body: a head with the interim answers before it, the extensions
# of a chunk, trailers.
_MAX_HEAD = 64 << 10
# Bytes of a request that are sent together with its head.
_SENT_AT_ONCE = 64 << 10
# Of one answer so much is read, and turned into events, before others have their turn; and what
# is read ahead, with its events at some ten times its size, stays in memory for as long as the
# caller does not read. So the more answers there are, the less is read of each at once; of few,
# large reads take less time.
_READ_MOST, _READ_LEAST, _READ_OF_ALL = 64 << 10, 8 << 10, 1 << 20
# What the event loop reads into, for every connection in turn.
_BUFFER = memoryview(bytearray(_READ_MOST))


@lru_cache
def read_size(answers: int) -> int:
    """Return how many bytes of an answer are read at once, while so many are being read."""
    return max(_READ_LEAST, min(_READ_MOST, _READ_OF_ALL // max(answers, 1)))


class Response:
    """The answer to one request; a body that is not read to its end must be closed.

    Attributes:
        status: the HTTP status.
        headers: names in any case; of those that repeat all are there.
    """

    def __init__(
        self,
        connection: "Connection",
        status: int,
        headers: CIMultiDictProxy[str],
        max_answer: int,
    ) -> None:
        self.status = status
        self.headers = headers
        self._connection = connection
        encoding = headers.get("content-encoding", "")
        self._unpacker = None
        if encoding and encoding.lower() != "identity":
            self._unpacker = Unpacker(encoding.lower())
            self._unpacked: Iterator[bytes] = iter(())
            self._left = max_answer  # bytes that may still be unpacked

    def read(self) -> Coroutine[Any, Any, bytes]:
        """Return what has come of the body, at least a byte; b"" at its end.

        Raises:
            CutOffError: the connection ended before it.
            NotHttpError: what came does not follow the rules of HTTP.
            TooLargeError: the answer is larger than the client takes.
        """
        if self._unpacker is None:
            return self._connection.read()
        return self._read_packed(self._unpacker)

    def rest(self) -> bytes | None:
        """Return what has not been read of the body, where all of that has come, else None."""
        return self._connection.rest() if self._unpacker is None else None

    async def _read_packed(self, unpacker: Unpacker) -> bytes:
        while True:
            if part := next(self._unpacked, b""):
                self._left -= len(part)
                if self._left < 0:
                    raise TooLargeError
                # Unpacking may go on for long without anything to wait for.
                await asyncio.sleep(0)
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
        max_answer: bytes that an answer may have, its head and framing among them.
        read_size: returns how many bytes of an answer may be read, or wait, at once.
        released: is called when a request has had its whole answer and the server keeps
            the connection open: another may follow.
        lost: is called when the connection is gone.

    Attributes:
        is_usable: whether a request may be sent.
        idle_since: when it was released, by the clock of whoever keeps it.
    """

    def __init__(
        self,
        max_answer: int,
        read_size: Callable[[], int],
        released: Callable[["Connection"], None],
        lost: Callable[["Connection"], None],
    ) -> None:
        self.is_usable = True
        self.idle_since = 0.0
        self._max_answer = max_answer
        self._read_size = read_size
        self._most = _READ_MOST  # what `read_size` returned last
        self._poll: select.poll | None = None
        self._released = released
        self._lost = lost
        self._transport: asyncio.Transport
        self._pieces: deque[bytes] = deque()
        # What the parser calls with each piece of a body, of which an answer may have thousands.
        self.on_body = self._pieces.append
        self._parser = httptools.HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._busy = False
        self._failure: HttpError | None = None
        self._lines: list[tuple[str, str]] = []  # of the head
        self._headers: CIMultiDict[str]
        self._received = 0  # bytes of the answer
        self._without_body = 0  # the last of them that were no body
        self._has_head = self._is_complete = self._ends_with_connection = self._stays = False
        self._size = 0
        self._is_paused = False

    async def request(self, data: bytes, body: bytes) -> Response:
        """Send a head and a body; give the answer with its body unread.

        Raises:
            HttpError: none came, or nothing that is HTTP.
        """
        self._busy = True
        self._lines.clear()
        self._received = self._without_body = self._size = 0
        self._has_head = self._is_complete = self._is_paused = False
        self._pieces.clear()
        if len(body) <= _SENT_AT_ONCE:
            self._transport.write(data + body)
        else:
            self._transport.write(data)
            self._transport.write(body)
        while not self._has_head:
            if self._failure is not None:
                raise self._failure
            self._waiter = self._loop.create_future()
            await self._waiter
        return Response(
            self,
            self._parser.get_status_code(),
            CIMultiDictProxy(self._headers),
            self._max_answer,
        )

    async def open_tunnel(self, head: bytes, tls: ssl.SSLContext, host: str) -> None:
        """Ask a proxy for a way to a server, and begin TLS with the server on it.

        Raises:
            HttpError: the proxy does not give one.
            OSError: TLS does not come about.
        """
        response = await self.request(head, b"")
        if not 200 <= response.status < 300:
            raise ConnectionBrokenError(f"the proxy answered CONNECT with {response.status}")
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(self._transport, self, tls, server_hostname=host)
        if transport is None:
            raise ConnectionBrokenError("the connection ended while TLS began")
        self._transport = transport
        self._parser = httptools.HttpResponseParser(self)

    async def read(self) -> bytes:
        """Return what has come of the body, b"" at its end; see `Response.read`."""
        while not self._pieces:
            if self._is_complete:
                return b""
            if self._failure is not None:
                raise self._failure
            self._waiter = self._loop.create_future()
            await self._waiter
        if len(self._pieces) == 1:
            data = self._pieces.popleft()
        else:
            data = b"".join(self._pieces)
            self._pieces.clear()
        if len(data) > self._most:
            self._pieces.append(data[self._most :])
            data = data[: self._most]
            await asyncio.sleep(0)
        self._size -= len(data)
        if self._is_paused and not self._pieces:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def rest(self) -> bytes | None:
        """Return what has not been read; see `Response.rest`."""
        if not self._is_complete or self._is_paused:
            return None
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data

    def is_silent(self) -> bool:
        """Return whether the server has sent nothing since the last answer, not even an end.

        The event loop may not have told yet of what has come.
        """
        if self._poll is None:
            self._poll = select.poll()
            descriptor = self._transport.get_extra_info("socket").fileno()
            self._poll.register(descriptor, select.POLLIN)
        return not self._poll.poll(0)

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
        self._most = self._read_size()
        return _BUFFER[: self._most]

    def buffer_updated(self, nbytes: int) -> None:
        """Take what has come."""
        if not self._busy:
            self.close()  # nobody has asked
            return
        if self._is_complete:
            self.is_usable = False  # the answer had ended
            return
        self._received += nbytes
        pieces = len(self._pieces)
        try:
            self._parser.feed_data(_BUFFER[:nbytes].tobytes())
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if self._is_complete:
                self.is_usable = False
            else:
                self._refuse(NotHttpError())
        self._without_body = 0 if len(self._pieces) > pieces else self._without_body + nbytes
        if not self._is_complete:
            if self._received > self._max_answer:
                self._refuse(TooLargeError())
            elif self._without_body > _MAX_HEAD:
                self._refuse(NotHttpError())
        # Not only bytes of the body count: a body of tiny chunks is larger here than there.
        self._size += nbytes
        if self._size > self._most and not self._is_paused and not self._is_complete:
            self._is_paused = True
            self._transport.pause_reading()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _refuse(self, error: HttpError) -> None:
        self._fail(error)
        self._transport.abort()

    def eof_received(self) -> bool:
        """Have nothing more to come; what was to be sent is of no more use either."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Mark the connection as closed."""
        is_end = self._has_head and self._ends_with_connection and error is None
        if is_end and self._failure is None:
            self._is_complete = True
        self._fail(CutOffError() if self._has_head else ConnectionBrokenError(str(error or "")))
        self._lost(self)

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Begin an answer.

        Raises:
            NotHttpError: one follows another in one read; it was not asked for.
        """
        if self._is_complete:
            raise NotHttpError

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a line of the head; those of trailers say nothing that is needed."""
        if not self._has_head:
            self._lines.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Have the head, unless it is that of an interim answer."""
        if 100 <= self._parser.get_status_code() < 200:
            self._lines.clear()
            return
        self._has_head = True
        headers = self._headers = CIMultiDict(self._lines)
        self._ends_with_connection = "content-length" not in headers and not headers.get(
            "transfer-encoding", ""
        ).lower().endswith("chunked")

    def on_message_complete(self) -> None:
        """Have the whole answer, unless it is an interim one."""
        self._is_complete = self._has_head
        # The parser knows it now, and forgets it with what comes next.
        self._stays = self._parser.should_keep_alive()
