"""The event stream of a background response, for callers that follow it."""

import asyncio
from collections.abc import AsyncGenerator

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

# Maximum bytes that are held of a stream.
MAX_EVENTS = 32 << 20


class LiveEvents:
    """A buffered byte stream that readers follow from its beginning.

    Of a stream of more than `MAX_EVENTS` bytes nothing is held, and its readers are cut off.
    """

    def __init__(self) -> None:
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
        if self._size > MAX_EVENTS:
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

    async def follow(self) -> AsyncGenerator[bytes, None]:
        """Yield the stream from its beginning, as it grows.

        Raises:
            GatewayError: too_large.
        """
        read = 0
        while True:
            changed, has_ended = self._changed, self._has_ended
            if self._is_cut:
                raise GatewayError(
                    errors_pb2.REASON_TOO_LARGE,
                    f"the response has more than {MAX_EVENTS:,} bytes of events",
                )
            data = b"".join(self._pieces[read:])
            read = len(self._pieces)
            if data:
                yield data
            if has_ended:
                return
            await changed.wait()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
