"""Readers of request bodies, with limits of time and memory.

A body that was received with the head is taken from its `Exchange`. Any other is limited in time
(`limits.body_idle_s`, `limits.min_body_bytes_per_s`) and, if buffered, in the total size of bodies
(`ByteBudget`). `100 Continue` is sent when the body is first read, after all checks of the head.
"""

import asyncio
from io import BytesIO
from typing import Final

from facade.http.exchange import BrokenBodyError, Exchange, body_too_large, broken_body
from facade.http_errors import HttpExchangeError
from services.common.errors import GatewayError
from services.common.process.byte_budget import Charge

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# Bodies of up to this size are not charged once they have been parsed.
_SMALL: Final = 1 << 20


class PieceReader:
    """Reads a body piece by piece, with time limits.

    Only time spent waiting for the client counts.
    """

    def __init__(self, exchange: Exchange) -> None:
        """Create a reader of a body that has not been received with the head."""
        assert exchange.content is not None
        self._exchange = exchange
        self._content = exchange.content
        self._limits = exchange.context.settings.limits
        self._time = asyncio.get_running_loop().time
        self._waited_s = 0.0
        self._received = 0
        self._is_expected = exchange.expect is not None

    async def next(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size` if given, and b"" at the end.

        Raises:
            GatewayError: the client sends nothing, or too slowly (408); the framing is broken.
        """
        if self._is_expected:
            self._is_expected = False
            self._send_continue()
        limits = self._limits
        left_s = limits.body_idle_s + self._received / limits.min_body_bytes_per_s - self._waited_s
        began = self._time()
        try:
            async with asyncio.timeout(min(limits.body_idle_s, left_s)):
                piece = (
                    await self._content.read(size) if size > 0 else await self._content.readany()
                )
        except TimeoutError:
            raise self._stalled(is_idle=left_s >= limits.body_idle_s) from None
        except BrokenBodyError:
            raise broken_body() from None
        self._waited_s += self._time() - began
        self._received += len(piece)
        return piece

    def _send_continue(self) -> None:
        if self._exchange.is_http_1_1 and not self._content.total_bytes:
            self._exchange.connection.write(_CONTINUE)

    def _stalled(self, *, is_idle: bool) -> HttpExchangeError:
        limits = self._limits
        if is_idle:
            problem, limit = f"no data received for {limits.body_idle_s:g} seconds", "body_idle_s"
        else:
            problem = f"received at less than {limits.min_body_bytes_per_s:,} bytes per second"
            limit = "min_body_bytes_per_s"
        return HttpExchangeError(408, "upload_stalled", f"body: {problem}", limit=f"limits.{limit}")


class ReceivedBody:
    """An async context manager that reads a whole body, returned as the only item of a list.

    Popping the item frees its memory as early as possible. The bytes are reserved in the process's
    budget until the block ends, or until the request has been answered (`keep`).
    """

    def __init__(
        self, exchange: Exchange, max_size: int, setting: str = "limits.max_body_bytes"
    ) -> None:
        """Create a reader for at most `max_size` bytes; `setting` is the name of that limit."""
        self._exchange = exchange
        self._max_size = max_size
        self._setting = setting
        self._charge: Charge | None = None

    async def __aenter__(self) -> list[bytes]:
        """Read the body.

        Raises:
            GatewayError: too_large; rate_limited or unavailable, there is no room for it;
                as `PieceReader.next`.
        """
        body = self._exchange.take_body(self._max_size, self._setting)
        if body is not None:
            return [body]
        if self._exchange.content_length > self._max_size:
            raise self._too_large()
        try:
            return [await self._read()]
        except BaseException:
            self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        """Release the bytes in the budget."""
        self._release()

    def keep(self) -> None:
        """Keep the bytes of a large body reserved until the request has been answered.

        What has been parsed of the body is held for as long, for retries and fallbacks.
        """
        if self._charge is not None and self._charge.size > _SMALL:
            self._exchange.body_charge, self._charge = self._charge, None

    async def _read(self) -> bytes:
        charge = self._charge = self._exchange.charge()
        charge.reserve(self._exchange.content_length)
        reader = PieceReader(self._exchange)
        # Preallocated: joining pieces would need twice the memory.
        body = BytesIO()
        while piece := await reader.next():
            size = body.tell() + len(piece)
            if size > self._max_size:
                raise self._too_large()
            if size > charge.size:
                charge.reserve(size - charge.size)
            body.write(piece)
        return body.getvalue()

    def _release(self) -> None:
        if self._charge is not None:
            self._charge.release()

    def _too_large(self) -> GatewayError:
        return body_too_large(self._max_size, self._setting)
