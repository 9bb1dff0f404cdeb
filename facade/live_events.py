"""The event stream of a background answer, for clients that follow it."""

import asyncio

from facade.http.exchange import Exchange
from facade.http.responses import StreamedResponse

_KEEPALIVE = b": keep-alive\n\n"


class LiveEvents:
    """A buffered byte stream that readers follow from its beginning.

    Args:
        max_bytes: maximum size of the buffer. Readers of a larger stream are cut off; they can
            read the stored answer later.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_cut = False
        self._has_ended = False
        self._changed = asyncio.Event()

    def add(self, data: bytes) -> None:
        """Append data to the stream."""
        if not data or self._is_cut:
            return
        self._size += len(data)
        if self._size > self._max_bytes:
            self._is_cut = True
            self._pieces.clear()
        else:
            self._pieces.append(data)
        self._wake()

    def end(self) -> None:
        """End the stream."""
        self._has_ended = True
        self._wake()

    def whole(self) -> bytes:
        """Return the stream so far, or b"" if it was too large."""
        return b"".join(self._pieces)

    async def write_to(self, exchange: Exchange) -> StreamedResponse:
        """Respond with the whole stream.

        Raises:
            ConnectionError: the client has left, or the stream was cut off.
        """
        response = StreamedResponse(exchange, {})
        keepalive_s = exchange.context.settings.limits.keepalive_s
        written = 0
        while True:
            changed = self._changed
            if self._is_cut:
                raise ConnectionResetError("the stream is larger than what is held of it")
            data = b"".join(self._pieces[written:])
            written = len(self._pieces)
            if self._has_ended:
                response.write_eof(data)
                return response
            response.write(data)
            if exchange.connection.writing_paused:
                await exchange.connection.drain()
            if changed is self._changed and not await _is_set(changed, keepalive_s):
                response.write(_KEEPALIVE)

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            return await event.wait()
    except TimeoutError:
        return False
