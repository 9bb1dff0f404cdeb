"""Responses whose head and body are written unchanged by aiohttp's loop."""

from collections.abc import Callable

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from facade.http.exchange import Exchange


class RawResponse(web.StreamResponse):
    """A complete response."""

    def __init__(
        self, status: int, encode: Callable[[], bytes], exchange: Exchange | None = None
    ) -> None:
        """Create a response.

        Args:
            status: HTTP status code.
            encode: returns head and body, or nothing if they have been written.
            exchange: decides whether the connection may be reused; without it the connection
                closes.
        """
        super().__init__(status=status)
        self._encode = encode
        self._exchange = exchange
        self._writer: AbstractStreamWriter | None = None

    @property
    def keep_alive(self) -> bool:
        """Whether the connection may be reused."""
        return self._exchange is not None and self._exchange.keep_alive

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Return the writer; `write_eof` writes head and body together."""
        self._writer = request.writer
        return self._writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Write head and body."""
        assert self._writer is not None
        # The frame that serves the connection refers to this response until the next request.
        encode, self._encode = self._encode, bytes
        await self._writer.write_eof(encode())
