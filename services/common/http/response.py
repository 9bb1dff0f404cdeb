"""The response to one request: its status, its headers, and its body, read incrementally."""

import asyncio
import zlib
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Protocol

from multidict import CIMultiDictProxy

from services.common.http.errors import CutOffError, NotHttpError, TooLargeError

# Receives a piece of a body; returns whether to stop the delivery.
OnPiece = Callable[[bytes], bool]

# Size of decompressed parts, in bytes, so that a small input cannot expand into a huge one.
_AT_ONCE = 1 << 18
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class ResponseBody(Protocol):
    """The body of a response."""

    @property
    def is_received(self) -> bool:
        """Whether all of it has been received, though perhaps not read."""
        ...

    def read(self) -> Coroutine[Any, Any, bytes]:
        """Return the next piece of the body, b"" at its end.

        Raises:
            CutOffError: the connection closed before the end of the body.
            NotHttpError: the response is not valid HTTP.
            TooLargeError: the response exceeds the client's limit.
        """
        ...

    def allow(self, max_bytes: int) -> None:
        """Allow the response to have more bytes than others, for a caller that holds few of them.

        It is called before the body is read.
        """
        ...

    async def whole(self) -> bytes:
        """Return the rest of the body once all of it has been received.

        Raises:
            HttpError: as `read`.
        """
        ...

    async def deliver(self, on_piece: OnPiece) -> bool:
        """Pass pieces of the body to `on_piece` as they arrive, from the event loop's callback.

        This saves a task switch per piece.

        Returns:
            Whether `on_piece` asked to stop; False at the end of the body.

        Raises:
            HttpError: as `read`.
            Exception: as `on_piece`.
        """
        ...

    def release(self) -> None:
        """Finish the request; a connection with an unread body is closed."""
        ...

    def close(self) -> None:
        """Close the connection at once; a pending `read` fails as if the server had done so."""
        ...


@dataclass(slots=True)
class Response:
    """The response to one request; release its body in any case.

    Attributes:
        status: the HTTP status.
        headers: case-insensitive; repeated fields are kept.
        body: the body, decompressed.
    """

    status: int
    headers: CIMultiDictProxy[str]
    body: ResponseBody


class UnpackedBody:
    """The decompressed body of a response; see `ResponseBody`.

    Args:
        packed: the body as it is received.
        encoding: its `content-encoding`, in lower case.
        max_bytes: maximum bytes of the decompressed body.

    Raises:
        NotHttpError: the encoding was not requested.
    """

    def __init__(self, packed: ResponseBody, encoding: str, max_bytes: int) -> None:
        self._packed = packed
        self._unpacker = _Unpacker(encoding)
        self._unpacked: Iterator[bytes] = iter(())
        self._left = max_bytes
        self.release = packed.release
        self.close = packed.close

    @property
    def is_received(self) -> bool:
        """See `ResponseBody`."""
        return self._packed.is_received

    def allow(self, max_bytes: int) -> None:
        """See `ResponseBody`."""
        self._left = max_bytes
        self._packed.allow(max_bytes)

    async def read(self) -> bytes:
        """Return the next piece of the body; see `ResponseBody`."""
        while True:
            if part := next(self._unpacked, b""):
                self._left -= len(part)
                if self._left < 0:
                    raise TooLargeError
                # Yield to the event loop: decompression may run for long without awaiting.
                await asyncio.sleep(0)
                return part
            piece = await self._packed.read()
            if not piece:
                if not self._unpacker.is_whole:
                    raise CutOffError
                return b""
            self._unpacked = self._unpacker.feed(piece)

    async def whole(self) -> bytes:
        """Return the rest of the body; see `ResponseBody`."""
        body = BytesIO()
        while piece := await self.read():
            body.write(piece)
        return body.getvalue()

    async def deliver(self, on_piece: OnPiece) -> bool:
        """Pass pieces of the body to `on_piece`; see `ResponseBody`."""
        while piece := await self.read():
            if on_piece(piece):
                return True
        return False


class _Unpacker:
    """Incremental decompressor for a `content-encoding`."""

    def __init__(self, encoding: str) -> None:
        try:
            self._inner = zlib.decompressobj(_WBITS[encoding])
        except KeyError:
            raise NotHttpError from None
        self._has_begun = False

    @property
    def is_whole(self) -> bool:
        """Whether the compressed body is complete or empty."""
        return self._inner.eof or not self._has_begun

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Decompress a piece, in parts of bounded size.

        Raises:
            NotHttpError: the data is corrupt, or continues after its end.
        """
        self._has_begun = True
        try:
            while piece:
                if part := self._inner.decompress(piece, _AT_ONCE):
                    yield part
                piece = self._inner.unconsumed_tail
        except zlib.error as error:
            raise NotHttpError from error
        if self._inner.unused_data:
            raise NotHttpError
