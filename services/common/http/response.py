"""The response to one request: its status, its headers, and its body, read incrementally."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol

from multidict import CIMultiDictProxy

from services.common.http.bodies import Unpacker
from services.common.http.errors import CutOffError, TooLargeError

# Receives a piece of a body; returns whether to stop the delivery.
OnPiece = Callable[[bytes], bool]


class Body(Protocol):
    """The body of a response as a connection receives it, before it is decompressed."""

    def read(self) -> Coroutine[Any, Any, bytes]:
        """See `Response.read`."""

    def rest(self) -> bytes | None:
        """See `Response.rest`."""

    async def whole(self) -> bytes:
        """See `Response.whole`."""

    async def deliver(self, on_piece: OnPiece) -> bool:
        """See `Response.deliver`."""

    def release(self) -> None:
        """Finish the request; a connection with an unread body is closed."""

    def close(self) -> None:
        """Close the connection at once."""


class Response:
    """The response to one request; close it if its body is not read to the end.

    Attributes:
        status: the HTTP status.
        headers: case-insensitive; repeated fields are kept.
    """

    def __init__(
        self,
        body: Body,
        status: int,
        headers: CIMultiDictProxy[str],
        max_answer_bytes: int,
    ) -> None:
        self.status = status
        self.headers = headers
        self._body = body
        encoding = headers.get("content-encoding", "")
        self._unpacker = None
        if encoding and encoding.lower() != "identity":
            self._unpacker = Unpacker(encoding.lower())
            self._unpacked: Iterator[bytes] = iter(())
            self._left = max_answer_bytes  # remaining limit of decompressed bytes

    def read(self) -> Coroutine[Any, Any, bytes]:
        """Return the next piece of the body, b"" at its end.

        Raises:
            CutOffError: the connection closed before the end of the body.
            NotHttpError: the response is not valid HTTP.
            TooLargeError: the response exceeds the client's limit.
        """
        if self._unpacker is None:
            return self._body.read()
        return self._read_packed(self._unpacker)

    def rest(self) -> bytes | None:
        """Return the rest of the body if it has been received completely, else None."""
        return self._body.rest() if self._unpacker is None else None

    async def _read_packed(self, unpacker: Unpacker) -> bytes:
        while True:
            if part := next(self._unpacked, b""):
                self._left -= len(part)
                if self._left < 0:
                    raise TooLargeError
                # Yield to the event loop: decompression may run for long without awaiting.
                await asyncio.sleep(0)
                return part
            piece = await self._body.read()
            if not piece:
                if not unpacker.is_whole:
                    raise CutOffError
                return b""
            self._unpacked = unpacker.feed(piece)

    async def whole(self) -> bytes | None:
        """Return the rest of the body once all of it has been received; None if it is compressed.

        Raises:
            CutOffError: the connection closed before the end of the body.
            NotHttpError: the response is not valid HTTP.
            TooLargeError: the response exceeds the client's limit.
        """
        return await self._body.whole() if self._unpacker is None else None

    async def deliver(self, on_piece: OnPiece) -> bool:
        """Pass pieces of the body to `on_piece` as they arrive, from the event loop's callback.

        This saves a task switch per piece.

        Returns:
            Whether `on_piece` asked to stop; False at the end of the body.

        Raises:
            HttpError: as `read`.
            Exception: as `on_piece`.
        """
        if self._unpacker is None:
            return await self._body.deliver(on_piece)
        while piece := await self.read():
            if on_piece(piece):
                return True
        return False

    def break_off(self) -> None:
        """Stop reading; a pending `read` fails as if the connection had closed."""
        self._body.close()

    def close(self) -> None:
        """Close the response; a connection with an unread body is closed too."""
        self._body.release()
