"""One HTTP/1.1 connection: sends a request and reads its response incrementally."""

import asyncio
import select
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from contextvars import copy_context
from copy import copy
from functools import lru_cache, partial
from time import perf_counter
from typing import cast

import httptools
from multidict import CIMultiDict, CIMultiDictProxy

from services.common.http.errors import (
    ConnectionBrokenError,
    CutOffError,
    HttpError,
    NotHttpError,
    TooLargeError,
)
from services.common.http.request_body import PiecedBody
from services.common.http.response import OnPiece, Response, ResponseBody, UnpackedBody
from services.common.process.loop_shares import shares_of, user_of_task

# Maximum consecutive bytes outside the body: a head with preceding interim responses, chunk
# extensions, trailers.
_MAX_HEAD = 64 << 10
# Bodies up to this size are sent in one write with the head.
_SENT_AT_ONCE = 64 << 10
# Bytes of a response that are read and parsed before other responses get their turn. Unread data
# and its events, about ten times its size, stay in memory until the caller reads them. The size
# therefore decreases with the number of responses; with few responses large reads are faster.
_READ_MOST, _READ_LEAST, _READ_OF_ALL = 64 << 10, 8 << 10, 1 << 20
# Data of fewer bytes takes less time to parse than timing it is worth.
_TIMED_FROM = 4 << 10
# Receive buffer, shared by all connections.
_BUFFER = memoryview(bytearray(_READ_MOST))


@lru_cache
def read_size(answers: int) -> int:
    """Return the read size in bytes for a number of concurrent responses."""
    return max(_READ_LEAST, min(_READ_MOST, _READ_OF_ALL // max(answers, 1)))


class ReadSize:
    """How many bytes of a response may be read, or buffered, at once.

    Attributes:
        most: the bytes; the pool of connections sets it by the number of responses.
    """

    __slots__ = ("most",)

    def __init__(self, most: int = _READ_MOST) -> None:
        self.most = most


class UpstreamConnection(asyncio.BufferedProtocol):
    """A connection, used by one request at a time.

    Args:
        max_answer_bytes: maximum size of a response in bytes, head and framing included.
        reads: limits what is read of a response at once.
        released: called when a response is complete and the connection can be reused.
        lost: called when the connection is closed.

    Attributes:
        is_usable: whether a request may be sent.
        idle_since: time of release, set by the pool.
        has_settled: whether no data followed a response while the connection was idle, set by the
            pool.
        is_received: whether the current response has been received completely.
    """

    def __init__(
        self,
        max_answer_bytes: int,
        reads: ReadSize,
        released: Callable[["UpstreamConnection"], None],
        lost: Callable[["UpstreamConnection"], None],
    ) -> None:
        self.is_usable = True
        self.idle_since = 0.0
        self.has_settled = False
        self._max_answer = self._max_received = max_answer_bytes
        self._reads = reads
        self._most = reads.most  # at the last read
        self._poll: select.poll | None = None
        self._released = released
        self._lost = lost
        self._transport: asyncio.Transport
        self._pieces: deque[bytes] = deque()
        # Called by the parser for each piece of a body; a response may have thousands.
        self.on_body = self._pieces.append
        # None after the connection has closed: it refers to this object, and would delay its
        # release.
        self._parser: httptools.HttpResponseParser | None = None
        self._loop = asyncio.get_running_loop()
        self._shares = shares_of(self._loop)
        self._user = ""  # who waits for the current response
        self._waiter: asyncio.Future[None] | None = None
        self._busy = False
        # Raised as a copy: the traceback of the original would keep a reference to this connection.
        self._failure: HttpError | None = None
        self._lines: list[tuple[str, str]] = []  # of the head
        self._status = 0
        self._headers: CIMultiDict[str]
        self._received = 0  # bytes of the response
        self._without_body = 0  # value of `_received` at the last byte outside the body
        self._has_head = self.is_received = self._ends_with_connection = self._stays = False
        self._size = 0
        self._is_paused = False
        # Whether the transport holds as much of a request as it should, and whether the rest of
        # the request is not sent, because the response has begun.
        self._is_writing_paused = self._is_request_cut = False
        # Whether the body is read in one piece, after its end.
        self._is_collected = False
        # Receives pieces while the body is delivered; and the exception that it raised.
        self._on_piece: OnPiece | None = None
        self._raised: Exception | None = None

    async def request(self, data: bytes, body: bytes | PiecedBody) -> Response:
        """Send a head and a body; return the response with its body unread.

        Raises:
            HttpError: no response arrived, or it is not valid HTTP.
            Exception: as the pieces of the body.
        """
        self._busy = True
        self._user = user_of_task.get()
        self._lines.clear()
        self._received = self._without_body = self._size = 0
        self._max_received = self._max_answer
        self._has_head = self.is_received = self._is_paused = self._is_collected = False
        self._pieces.clear()
        if not isinstance(body, bytes):
            await self._send_pieces(data, body)
        elif len(body) <= _SENT_AT_ONCE:
            self._transport.write(data + body)
        else:
            self._transport.write(data)
            self._transport.write(body)
        del body  # an answer may take minutes
        while not self._has_head:
            if self._failure is not None:
                raise copy(self._failure)
            self._waiter = self._loop.create_future()
            await self._waiter
        headers = self._headers
        answer: ResponseBody = self
        encoding = headers.get("content-encoding", "").lower()
        if encoding and encoding != "identity":
            answer = UnpackedBody(self, encoding, self._max_answer)
        return Response(self._status, CIMultiDictProxy(headers), answer)

    def allow(self, max_bytes: int) -> None:
        """See `ResponseBody`."""
        self._max_received = max_bytes

    async def _send_pieces(self, data: bytes, body: PiecedBody) -> None:
        """Send a head and a body as fast as the server reads, until it answers."""
        self._transport.write(data)
        async with aclosing(body.pieces()) as pieces:
            async for piece in pieces:
                while self._is_writing_paused and not self._has_head and self._failure is None:
                    self._waiter = self._loop.create_future()
                    await self._waiter
                if self._has_head or self._failure is not None:
                    self._is_request_cut = True
                    return
                self._transport.write(piece)

    async def open_tunnel(self, head: bytes, tls: ssl.SSLContext, host: str) -> None:
        """Open a tunnel through a proxy, and start TLS with the server.

        Raises:
            HttpError: the proxy rejected the tunnel.
            OSError: the TLS handshake failed.
        """
        response = await self.request(head, b"")
        if not 200 <= response.status < 300:
            raise ConnectionBrokenError(f"the proxy answered CONNECT with {response.status}")
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(self._transport, self, tls, server_hostname=host)
        if transport is None:
            raise ConnectionBrokenError("the connection ended during the TLS handshake")
        self._transport = transport
        self._parser = httptools.HttpResponseParser(self)

    async def read(self) -> bytes:
        """Return the next piece of the body, b"" at its end; see `ResponseBody.read`."""
        while not self._pieces:
            if self.is_received:
                return b""
            if self._failure is not None:
                raise copy(self._failure)
            self._waiter = self._loop.create_future()
            await self._waiter
        self._size = 0
        data = b"".join(self._pieces)
        self._pieces.clear()
        if len(data) > self._most:
            self._pieces.append(data[self._most :])
            self._size = len(data) - self._most
            data = data[: self._most]
            await asyncio.sleep(0)
        if self._is_paused and not self._pieces:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    async def deliver(self, on_piece: OnPiece) -> bool:
        """Pass the pieces of the body to `on_piece` as they arrive; see `ResponseBody.deliver`."""
        while self._pieces:
            if on_piece(await self.read()):
                return True
        # The event loop runs callbacks in another context.
        run: Callable[..., bool] = copy_context().run
        self._on_piece = partial(run, on_piece)
        try:
            while self._on_piece is not None and not self.is_received:
                if self._failure is not None:
                    raise copy(self._failure)
                self._waiter = self._loop.create_future()
                await self._waiter
            if self._raised is not None:
                raise self._raised
            return self._on_piece is None
        finally:
            self._on_piece = self._raised = None

    async def whole(self) -> bytes:
        """Return the rest of the body once it is complete; see `ResponseBody.whole`."""
        self._is_collected = True
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        while not self.is_received:
            if self._failure is not None:
                raise copy(self._failure)
            self._waiter = self._loop.create_future()
            await self._waiter
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data

    def is_silent(self) -> bool:
        """Return whether the server has sent nothing since the last response, not even EOF.

        Data may have arrived that the event loop has not reported yet.
        """
        if self._poll is None:
            self._poll = select.poll()
            descriptor = self._transport.get_extra_info("socket").fileno()
            self._poll.register(descriptor, select.POLLIN)
        return not self._poll.poll(0)

    def release(self) -> None:
        """Finish the request: release the connection, or close it if it cannot be reused."""
        if not self._busy:
            return
        self._busy = False
        # A server that responds before it has read the whole request may take the rest for a new
        # request.
        is_request_sent = not (self._is_request_cut or self._transport.get_write_buffer_size())
        if self.is_received and self._stays and self.is_usable and is_request_sent:
            self._pieces.clear()
            self._size = 0
            self._released(self)
        else:
            self.close()

    def close(self) -> None:
        """Close the connection at once."""
        self.is_usable = False
        self._transport.abort()

    def close_idle(self) -> None:
        """Close an idle connection gracefully."""
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

    # Protocol callbacks, called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the transport; called again with a new one when TLS starts within the connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpResponseParser(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the receive buffer."""
        self._most = self._reads.most
        return _BUFFER[: self._most]

    def buffer_updated(self, nbytes: int) -> None:
        """Parse received data, and let others have their turn before more is read."""
        is_timed = nbytes >= _TIMED_FROM and self._shares is not None
        began = perf_counter() if is_timed else 0.0
        self._receive(nbytes)
        if not self._busy or self.is_received or self._failure is not None:
            return
        if is_timed and self._shares is not None and self._user:
            self._shares.add(self._user, began)
            turn = self._shares.turn(self._user)
            if turn is not None:
                self._transport.pause_reading()
                turn.add_done_callback(self._read_on)
                return
        if nbytes == self._most and self._on_piece is not None:
            # More data is waiting: uvloop would read again, up to 32 times, before it returns to
            # other connections.
            self._transport.pause_reading()
            self._loop.call_soon(self._read_on)

    def _receive(self, nbytes: int) -> None:
        if not self._busy:
            self.close()  # unsolicited data
            return
        if self.is_received:
            self.is_usable = False  # the response had already ended
            return
        self._received += nbytes
        pieces = len(self._pieces)
        assert self._parser is not None, "data comes before the end"
        try:
            self._parser.feed_data(_BUFFER[:nbytes].tobytes())
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if self.is_received:
                self.is_usable = False
            else:
                self._refuse(NotHttpError())
        self._without_body = 0 if len(self._pieces) > pieces else self._without_body + nbytes
        if not self.is_received:
            if self._received > self._max_received:
                self._refuse(TooLargeError())
            elif self._without_body > _MAX_HEAD:
                self._refuse(NotHttpError())
        if self._on_piece is not None:
            self._deliver_buffered(self._on_piece)
            return
        # Counted here, with framing: a body of tiny chunks is much larger on the wire.
        self._size += nbytes
        if not self.is_received:
            if self._is_collected:
                return
            if self._size > self._most and not self._is_paused:
                self._is_paused = True  # until the buffered data is read
                self._transport.pause_reading()
        self._wake()

    def _read_on(self, _turn: object = None) -> None:
        """Resume reading, unless it is paused for another reason or the connection closes."""
        if not self._is_paused and not self._transport.is_closing():
            self._transport.resume_reading()

    def _deliver_buffered(self, on_piece: OnPiece) -> None:
        """Pass received data to `on_piece`; wake the task at the end, or if it asks to stop."""
        if self._pieces:
            try:
                self._size = 0
                piece = b"".join(self._pieces)
                self._pieces.clear()
                if on_piece(piece):
                    self._on_piece = None
            except Exception as error:
                # Raised in the waiting task.
                self._raised = error
                self._on_piece = None
        if self._on_piece is None or self.is_received:
            self._wake()

    def _refuse(self, error: HttpError) -> None:
        self._fail(error)
        self._transport.abort()

    def pause_writing(self) -> None:
        """Note that the transport holds as much of a request as it should."""
        self._is_writing_paused = True

    def resume_writing(self) -> None:
        """Send the next piece of a request."""
        self._is_writing_paused = False
        self._wake()

    def eof_received(self) -> bool:
        """Close the connection at EOF; data that is not sent yet is discarded."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Mark the connection as closed."""
        is_end = self._has_head and self._ends_with_connection and error is None
        if is_end and self._failure is None:
            self.is_received = True
        self._fail(CutOffError() if self._has_head else ConnectionBrokenError(str(error or "")))
        self._lost(self)
        self._parser = None

    # Parser callbacks.

    def on_message_begin(self) -> None:
        """Begin a response.

        Raises:
            NotHttpError: an unsolicited second response.
        """
        if self.is_received:
            raise NotHttpError

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header field; trailer fields are ignored."""
        if not self._has_head:
            self._lines.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Finish the head, unless it is of an interim response."""
        assert self._parser is not None, "it calls this"
        self._status = self._parser.get_status_code()
        if 100 <= self._status < 200:
            self._lines.clear()
            return
        self._has_head = True
        headers = self._headers = CIMultiDict(self._lines)
        self._ends_with_connection = "content-length" not in headers and not headers.get(
            "transfer-encoding", ""
        ).lower().endswith("chunked")

    def on_message_complete(self) -> None:
        """Finish the response, unless it is an interim one."""
        assert self._parser is not None, "it calls this"
        self.is_received = self._has_head
        # The parser's flag is only valid here, before the next response.
        self._stays = self._parser.should_keep_alive()
