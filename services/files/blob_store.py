"""The interface of blob stores, and the writer of a blob."""

import asyncio
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from services.common.errors import GatewayError
from services.files.blob_errors import storage_unavailable, translate_errors

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# Maximum size in bytes of the pieces that callers write or read.
PIECE = 1 << 20
# Blobs in a batch of a listing.
LIST_AT_ONCE = 1000
# Keys of the gateway's blobs; a part that a killed process left in a folder has a number appended.
BLOB_KEY = re.compile(r"(?:file-|part_)[0-9A-Z]{26}(#[0-9]+)?", re.ASCII)
# Blobs deleted in parallel: each is a request to a bucket, or work of a thread.
_PARALLEL_DELETIONS = 16
# Maximum seconds to wait for an aborted upload to clean up.
_ABANDON_S = 5.0

log = logging.getLogger(__name__)


class BlobEntry(NamedTuple):
    """A blob, or an incomplete one: its key, and the time of its last write in Unix seconds."""

    key: str
    modified_s: float


class _AbandonedError(Exception):
    """Error raised inside the store to abort the upload of a blob."""


class Blobs(ABC):
    """A blob store, whose keys are the ids of files, and of parts of uploads."""

    def __init__(self, part_size: int) -> None:
        self._part_size = part_size

    @property
    @abstractmethod
    def store(self) -> "ObjectStore":
        """The library's store, which writes the blobs."""

    @asynccontextmanager
    async def writing(self, key: str) -> AsyncIterator["Writing"]:
        """Write a blob; if the block raises an exception, nothing of the blob is kept.

        Raises:
            GatewayError: storage_unavailable, when the store cannot write now.
        """
        with translate_errors():
            store = self.store
        writing = Writing(self, store, key, self._part_size)
        try:
            yield writing
        except BaseException:
            await writing.abandon()
            raise

    @abstractmethod
    async def put(self, key: str, content: bytes) -> None:
        """Write a short blob, and make it durable.

        Raises:
            GatewayError: storage_unavailable, when the store cannot write now.
        """

    @abstractmethod
    async def sync(self, key: str) -> None:
        """Make a blob that was just written in pieces durable."""

    @abstractmethod
    def reading(
        self, key: str, first: int, length: int
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read `length` bytes from the byte `first` on, in pieces of at most `PIECE`.

        A read in progress continues even if the blob is deleted.

        Raises:
            BlobMissingError: there is no such blob.
            GatewayError: storage_unavailable, when the store cannot read now.
        """

    @abstractmethod
    async def delete(self, key: str) -> None:
        """Delete a blob, or an incomplete one, if it exists.

        Raises:
            GatewayError: storage_unavailable, when the store cannot write now.
        """

    @abstractmethod
    def entries(self) -> AsyncIterator[Sequence[BlobEntry]]:
        """List the gateway's blobs, also incomplete ones in a folder, in batches in any order.

        Raises:
            GatewayError: storage_unavailable, when the store cannot read now.
        """


class Writing:
    """Writer of one blob.

    The store pulls pieces from an iterator; callers push them, with one piece waiting at most.
    A short blob is written at once: on S3 that is one request instead of three.
    """

    def __init__(self, blobs: Blobs, store: "ObjectStore", key: str, part_size: int) -> None:
        self._blobs = blobs
        self._store = store
        self._key = key
        self._part_size = part_size
        self._held = bytearray()
        self._pieces: _PieceIterator | None = None
        self._putting: asyncio.Future[Any] | None = None

    async def write(self, piece: bytes) -> None:
        """Write the next bytes; return when there is room for more.

        Raises:
            GatewayError: storage_unavailable, when the store cannot write now.
        """
        if self._pieces is None:
            self._held += piece
            if len(self._held) <= min(self._part_size, PIECE):
                return
            piece = bytes(self._held)
            self._held.clear()
            self._pieces = self._begin()
        await self._push(piece)

    async def finish(self) -> None:
        """Write the rest; afterwards the blob exists and is durable.

        Raises:
            GatewayError: storage_unavailable, when the store cannot write now.
        """
        if self._pieces is None:
            await self._blobs.put(self._key, bytes(self._held))
            return
        await self._push(None)
        assert self._putting is not None
        with translate_errors():
            await asyncio.shield(self._putting)
        await self._blobs.sync(self._key)

    async def abandon(self) -> None:
        """Abort the upload: discard what was written, and delete the blob if it exists already."""
        if self._putting is not None and self._pieces is not None:
            self._pieces.push(_AbandonedError())
            await asyncio.wait([self._putting], timeout=_ABANDON_S)
        with suppress(GatewayError):
            await self._blobs.delete(self._key)

    def _begin(self) -> "_PieceIterator":
        pieces = _PieceIterator()
        putting = asyncio.ensure_future(
            self._store.put_async(self._key, pieces, chunk_size=self._part_size, max_concurrency=1)
        )
        putting.add_done_callback(pieces.close)
        self._putting = putting
        return pieces

    async def _push(self, piece: bytes | None) -> None:
        assert self._pieces is not None
        assert self._putting is not None
        await self._pieces.ready.wait()
        if self._putting.done():
            with translate_errors():
                self._putting.result()
        self._pieces.push(piece)


class _PieceIterator:
    """Async iterator from which a store pulls the pieces that are pushed.

    Pushing None ends the iteration; a pushed exception is raised in the store.

    Attributes:
        ready: set while the next piece may be pushed, or when the store has stopped reading.
    """

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.ready.set()
        self._pushed = asyncio.Event()
        self._piece: bytes | Exception | None = None

    def push(self, piece: bytes | Exception | None) -> None:
        self._piece = piece
        self.ready.clear()
        self._pushed.set()

    def close(self, putting: "asyncio.Future[Any]") -> None:
        if not putting.cancelled():
            putting.exception()  # retrieved here, in case nobody awaits it any more
        self.ready.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        await self._pushed.wait()
        self._pushed.clear()
        piece, self._piece = self._piece, None
        if piece is None:
            raise StopAsyncIteration
        if isinstance(piece, Exception):
            raise piece
        self.ready.set()
        return piece


async def delete_blobs(blobs: Blobs, keys: Sequence[str]) -> None:
    """Delete blobs, some at a time.

    Raises:
        GatewayError: storage_unavailable, after all of that time have ended.
    """
    for start in range(0, len(keys), _PARALLEL_DELETIONS):
        deletions = map(blobs.delete, keys[start : start + _PARALLEL_DELETIONS])
        for outcome in await asyncio.gather(*deletions, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome


def shorter_blob(key: str) -> GatewayError:
    """Return the error for a blob that ends before its file does."""
    log.error("a blob is shorter than its file", extra={"key": key})
    return storage_unavailable()
