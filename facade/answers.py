"""Answers that are written without aiohttp's `StreamWriter`.

A whole one, in JSON, is one write of head and body. It does without what `web.Response` does
about codings, cookies and other kinds of body: none of that ever applies here, and each answer
pays for it.
"""

from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache

from aiohttp import ClientConnectionResetError, HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from facade.context import CORS_HEADERS, REQUEST_ID


class Answer(web.StreamResponse):
    """What answers a request well.

    Args:
        body: JSON.
        headers: beside those that every answer has; names and values are safe to send.
        now: Unix seconds.
    """

    def __init__(self, body: bytes, headers: Mapping[str, str], now: float) -> None:
        super().__init__()
        self._second = int(now)
        self._json = body
        self._fields = headers
        self._stays = self._closes = False
        self._head = b""
        self._request: web.BaseRequest | None = None

    @property
    def keep_alive(self) -> bool:
        """Whether the connection may be used again."""
        return self._stays

    def force_close(self) -> None:
        """Have the connection closed behind this answer; said in its head."""
        self._closes = True

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Put the head together; it goes with the body."""
        if self._request is None:
            self._request = request
            self._stays = request.keep_alive and not self._closes
            own = _lines(self._fields)
            if CORS_HEADERS in request:
                told = request[CORS_HEADERS]
                own += _lines(told)
            last = ""
            if not self._stays:
                last = "Connection: close\r\n"
            elif request.version < HttpVersion11:
                last = "Connection: keep-alive\r\n"  # which goes without saying since
            request_id = request[REQUEST_ID]
            self._head = (
                "HTTP/1.1 200 OK\r\n"
                "Content-Type: application/json\r\n"
                f"Content-Length: {len(self._json)}\r\n"
                f"Date: {_date(self._second)}\r\n"
                f"{own}x-request-id: {request_id}\r\nrequest-id: {request_id}\r\n"
                f"{last}\r\n"
            ).encode("ascii")
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Write it, and wait while the caller reads more slowly than that.

        Raises:
            ConnectionError: the caller has left.
        """
        request = self._request
        assert request is not None
        whole = self._head + self._json
        request.writer.output_size += len(whole)
        connection = request.protocol
        send(connection, whole)
        if connection.writing_paused:
            await request.writer.drain()


def send(connection: web.RequestHandler, data: bytes) -> None:
    """Write bytes of an answer that are framed already.

    Raises:
        ConnectionError: the caller has left.
    """
    transport = connection.transport
    if transport is None or transport.is_closing():
        raise ClientConnectionResetError("the caller has left")
    transport.write(data)


def _lines(fields: Mapping[str, str]) -> str:
    return "".join(map("%s: %s\r\n".__mod__, fields.items()))


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
