"""Decompression of response bodies."""

import zlib
from collections.abc import Iterator

from services.common.http.errors import NotHttpError

# Size of decompressed parts, in bytes, so that a small input cannot expand into a huge one.
_AT_ONCE = 1 << 18
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class Unpacker:
    """Incremental decompressor for a `content-encoding`.

    Raises:
        NotHttpError: the encoding was not requested.
    """

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
