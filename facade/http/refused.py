"""A connection beyond the maximum, which stays open until its client can have read the refusal.

Closing a connection with unread data resets it, and the client may lose the response. Its request
may arrive only after the refusal.
"""

import asyncio
from collections.abc import Callable

from facade.http.head_errors import path_of
from facade.http.parser import LINGER_BYTES


class RefusedConnection:
    """A connection whose first data is answered with an error, and whose further data is dropped.

    Args:
        transport: the open transport of the connection.
        response: returns the response to a request for a path, or for "" if it is unknown.
        is_new: whether the connection was never served: it is answered even without a request.
    """

    def __init__(
        self, transport: asyncio.Transport, response: Callable[[str], bytes], *, is_new: bool
    ) -> None:
        self._transport = transport
        self._response = response
        self._is_new = is_new
        self._is_answered = False
        self._dropped = 0

    def receive(self, data: bytes) -> None:
        """Answer the first data; drop all, up to a maximum."""
        if not self._is_answered:
            self.answer(path_of(data))
        self._dropped += len(data)
        if self._dropped > LINGER_BYTES:
            self._transport.pause_reading()

    def answer(self, path: str) -> None:
        """Write the response to a request for `path`."""
        self._is_answered = True
        self._transport.write(self._response(path))
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def end(self) -> None:
        """Close the connection."""
        if self._is_new and not self._is_answered:
            self.answer("")
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()
