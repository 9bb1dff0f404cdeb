"""Responses: complete ones, event streams, and bodies of known length in pieces."""

from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING

from facade.http.exchange import Exchange

if TYPE_CHECKING:
    from facade.http.websocket import WebSocket

STATUS_LINES = {status.value: f"HTTP/1.1 {status} {status.phrase}" for status in HTTPStatus}
NO_HEADERS: Mapping[str, str] = {}
# Statuses of responses that have no content (RFC 9110, section 8.6).
_WITHOUT_LENGTH = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
_EVENTS = "text/event-stream; charset=utf-8"
_UNCACHED = "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"


class WholeResponse:
    """A complete response, by default without content.

    Attributes:
        status: HTTP status code.
        body: the content.
        content_type: media type of the content, or "" without content.
        headers: additional headers; names and values must be valid.
    """

    __slots__ = ("body", "headers", "status")

    content_type = ""

    def __init__(
        self, body: bytes = b"", headers: Mapping[str, str] = NO_HEADERS, status: int = 200
    ) -> None:
        self.status = status
        self.body = body
        self.headers = headers

    def encode(self, exchange: Exchange) -> bytes:
        """Return head and body."""
        fields = ""
        if self.status not in _WITHOUT_LENGTH:
            fields = f"Content-Length: {len(self.body)}\r\n"
        if self.content_type:
            fields = f"Content-Type: {self.content_type}\r\n{fields}"
        head = _head(exchange, self.status, fields, self.headers)
        return head if exchange.method == "HEAD" else head + self.body


class JsonResponse(WholeResponse):
    """A complete JSON response."""

    __slots__ = ()

    content_type = "application/json"


class TypedResponse(WholeResponse):
    """A complete response of another media type."""

    __slots__ = ("content_type",)

    def __init__(
        self,
        body: bytes,
        content_type: str,
        headers: Mapping[str, str] = NO_HEADERS,
        status: int = 200,
    ) -> None:
        super().__init__(body, headers, status)
        self.content_type = content_type


class SizedResponse:
    """A response of known length whose body is written in pieces.

    Attributes:
        status: HTTP status code.
    """

    __slots__ = ("_exchange", "_head", "_missing", "status")

    def __init__(
        self, exchange: Exchange, length: int, headers: Mapping[str, str], status: int = 200
    ) -> None:
        """Build the head, which is written with the first piece.

        Args:
            exchange: the request.
            length: size of the body in bytes.
            headers: headers beside Content-Length.
            status: HTTP status code.
        """
        self.status = status
        exchange.has_begun = True
        if not exchange.is_received:
            exchange.keep_alive = False
        self._exchange = exchange
        self._missing = 0 if exchange.method == "HEAD" else length
        self._head = _head(exchange, status, f"Content-Length: {length}\r\n", headers)

    async def write(self, piece: bytes) -> None:
        """Write a piece of the body, and wait while the client does not read.

        Raises:
            ConnectionError: the caller has left.
        """
        head, self._head = self._head, b""
        self._missing -= len(piece)
        connection = self._exchange.connection
        connection.write(head + piece if head else piece)
        if connection.writing_paused:
            await connection.drain()

    async def end(self) -> None:
        """End the response; if part of the body is missing, the connection closes.

        Raises:
            ConnectionError: the caller has left.
        """
        if self._head:
            await self.write(b"")
        if self._missing:
            self._exchange.keep_alive = False


class StreamedResponse:
    """A response of unknown length, chunked if the client supports it.

    Attributes:
        status: HTTP status code.
    """

    __slots__ = ("_connection", "_head", "_is_chunked", "status")

    def __init__(
        self, exchange: Exchange, headers: Mapping[str, str], content_type: str = _EVENTS
    ) -> None:
        """Build the head, which is written with the first data; by default of an event stream."""
        self.status = 200
        exchange.has_begun = True
        self._connection = exchange.connection
        if exchange.takes_headers is not None:
            exchange.takes_headers({**headers, "x-request-id": exchange.request_id})
            self._is_chunked, self._head = False, b""
            return
        fields = f"Content-Type: {content_type}\r\n{_UNCACHED}"
        self._is_chunked = exchange.is_http_1_1
        if self._is_chunked:
            fields += "Transfer-Encoding: chunked\r\n"
        else:
            exchange.keep_alive = False
        self._head = _head(exchange, self.status, fields, headers)

    def write(self, *parts: bytes, is_last: bool = False) -> None:
        """Write data; the first call also writes the head.

        Args:
            parts: the data in pieces; large ones are copied once.
            is_last: whether the response ends with this data.

        Raises:
            ConnectionError: the caller has left.
        """
        framed = [self._head, *parts, b""]
        self._head = b""
        if self._is_chunked:
            if size := sum(map(len, parts)):  # an empty chunk would end the body
                framed[0] += b"%x\r\n" % size
                framed[-1] = b"\r\n"
            if is_last:
                framed[-1] += b"0\r\n\r\n"
        if data := b"".join(framed):
            self._connection.write(data)


class SwitchedResponse:
    """The response that opens a WebSocket (RFC 6455, section 4.2.2).

    Attributes:
        status: HTTP status code.
        serve: serves the socket until it is closed, with a function that serves requests.
    """

    __slots__ = ("_accept", "serve", "status")

    def __init__(
        self, accept: str, serve: "Callable[[WebSocket, Respond], Awaitable[None]]"
    ) -> None:
        """Create the response; `accept` is the value of `Sec-WebSocket-Accept`."""
        self.status = 101
        self._accept = accept
        self.serve = serve

    def encode(self, exchange: Exchange) -> bytes:
        """Return the head."""
        exchange.keep_alive = True  # `Connection` has another value here
        fields = (
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {self._accept}\r\n"
        )
        return _head(exchange, self.status, fields, NO_HEADERS)


Response = WholeResponse | SizedResponse | StreamedResponse | SwitchedResponse
Respond = Callable[[Exchange], Awaitable[Response]]


def _head(exchange: Exchange, status: int, fields: str, headers: Mapping[str, str]) -> bytes:
    """Return the head of a response, with the fields common to all responses."""
    own = ""
    for name, value in (*headers.items(), *exchange.cors_headers.items()):
        own += f"{name}: {value}\r\n"
    last = ""
    if not exchange.keep_alive:
        last = "Connection: close\r\n"
    elif not exchange.is_http_1_1:
        last = "Connection: keep-alive\r\n"  # the default since HTTP/1.1
    request_id = exchange.request_id
    return (
        f"{STATUS_LINES.get(status) or f'HTTP/1.1 {status} Error'}\r\n{fields}"
        f"Date: {_date(int(exchange.context.clock.now()))}\r\n"
        f"{own}x-request-id: {request_id}\r\nrequest-id: {request_id}\r\n"
        f"{last}\r\n"
    ).encode()


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
