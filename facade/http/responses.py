"""Responses written without aiohttp: complete JSON responses, and event streams."""

from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from facade.http.exchange import Exchange

_STATUS_LINES = {status.value: f"HTTP/1.1 {status} {status.phrase}" for status in HTTPStatus}
_EVENT_STREAM = (
    "Content-Type: text/event-stream; charset=utf-8\r\n"
    "Cache-Control: no-cache\r\n"
    "X-Accel-Buffering: no\r\n"
)


class JsonResponse:
    """A complete JSON response.

    Attributes:
        status: HTTP status code.
        body: JSON.
        headers: additional headers; names and values must be valid.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(self, body: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.status = status
        self.body = body
        self.headers = headers

    def encode(self, exchange: Exchange) -> bytes:
        """Return head and body.

        A response before the end of its request closes the connection.
        """
        if not exchange.is_received:
            exchange.keep_alive = False
        fields = f"Content-Type: application/json\r\nContent-Length: {len(self.body)}\r\n"
        head = _head(exchange, self.status, fields, self.headers)
        return head if exchange.method == "HEAD" else head + self.body


class StreamedResponse:
    """A response with server-sent events, chunked if the client supports it.

    Attributes:
        status: HTTP status code.
    """

    __slots__ = ("_connection", "_head", "_is_chunked", "status")

    def __init__(self, exchange: Exchange, headers: Mapping[str, str]) -> None:
        """Build the head, which is written with the first data."""
        self.status = 200
        exchange.has_begun = True
        fields = _EVENT_STREAM
        self._is_chunked = exchange.is_http_1_1
        if self._is_chunked:
            fields += "Transfer-Encoding: chunked\r\n"
        else:
            exchange.keep_alive = False
        self._connection = exchange.connection
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

    def write_eof(self, *parts: bytes) -> None:
        """Write the last data, possibly none, and end the response.

        Raises:
            ConnectionError: the caller has left.
        """
        self.write(*parts, is_last=True)


Response = JsonResponse | StreamedResponse


def _head(exchange: Exchange, status: int, fields: str, headers: Mapping[str, str]) -> bytes:
    """Return the head of a response, with the fields common to all responses."""
    own = _lines(headers)
    if exchange.cors_headers:
        own += _lines(exchange.cors_headers)
    last = ""
    if not exchange.keep_alive:
        last = "Connection: close\r\n"
    elif not exchange.is_http_1_1:
        last = "Connection: keep-alive\r\n"  # the default since HTTP/1.1
    request_id = exchange.request_id
    return (
        f"{status_line(status)}\r\n{fields}"
        f"Date: {_date(int(exchange.context.clock.now()))}\r\n"
        f"{own}x-request-id: {request_id}\r\nrequest-id: {request_id}\r\n"
        f"{last}\r\n"
    ).encode()


def status_line(status: int) -> str:
    """Return the first line of a response."""
    return _STATUS_LINES.get(status) or f"HTTP/1.1 {status} Error"


def _lines(headers: Mapping[str, str]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
