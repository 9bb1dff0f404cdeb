"""Bodies that come packed."""

import zlib
from collections.abc import Iterator

from services.inference.http.errors import NotHttpError

# How much is unpacked at a time, so that a small piece cannot become a huge one.
_AT_ONCE = 1 << 18
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class Unpacker:
    """Unpacks a body piece by piece, as its `content-encoding` says.

    Raises:
        NotHttpError: the encoding is one that nobody asked for.
    """

    def __init__(self, encoding: str) -> None:
        try:
            self._inner = zlib.decompressobj(_WBITS[encoding])
        except KeyError:
            raise NotHttpError from None
        self._has_begun = False

    @property
    def is_whole(self) -> bool:
        """Whether all that was packed has come, or nothing was."""
        return self._inner.eof or not self._has_begun

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Return what a piece holds, in parts of bounded size.

        Raises:
            NotHttpError: it is not packed as was said, or goes on after its end.
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
