"""Blob stores for the bytes of files: a local folder, or a bucket of an S3 server.

A blob becomes visible under its key only as a whole, and is durable once `Writing.finish`
returns. At most a few MiB of a blob are in memory. Errors of a store are logged and raised
as `storage_unavailable`; the next call tries again.
"""

import asyncio
import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    suppress,
)
from datetime import timedelta
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from services.common.errors import GatewayError
from services.common.settings import SettingsError, Storage
from services.files.blob_errors import BlobMissingError, storage_unavailable, translate_errors

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ObjectStore, S3Store

FOLDER = "files"
# Maximum size in bytes of the pieces that callers write or read.
PIECE = 1 << 20
# Bytes written to a folder at a time.
_FOLDER_PART = 256 << 10
# Bytes read from a folder's file at a time: they stay in memory until their reader takes them.
_READ_AT_ONCE = 256 << 10
# Minimum size in bytes of a part of a multipart upload to S3.
_S3_PART = 5 << 20
_LIST_AT_ONCE = 1000
# Maximum seconds to wait for an aborted upload to clean up.
_ABANDON_S = 5.0
# Keys of the gateway's blobs; a part that a killed process left in a folder has a number appended.
_KEY = re.compile(r"file-[0-9A-Z]{26}(#[0-9]+)?", re.ASCII)

log = logging.getLogger(__name__)


class BlobEntry(NamedTuple):
    """A blob, or an incomplete one: its key, and the time of its last write in Unix seconds."""

    key: str
    modified_s: float


class _AbandonedError(Exception):
    """Error raised inside the store to abort the upload of a blob."""


def open_blobs(storage: Storage) -> "Blobs":
    """Return the store that the settings name, without connecting to it.

    Credentials, region and endpoint of S3 come from the usual AWS_… variables.

    Raises:
        SettingsError: `storage.blob_url` is not the URL of a bucket, or the folder cannot
            be created.
    """
    if not storage.blob_url:
        return FolderBlobs.at(storage.data_dir / FOLDER)
    scheme, _, place = storage.blob_url.partition("://")
    bucket, _, prefix = place.partition("/")
    if scheme != "s3" or not bucket:
        raise SettingsError(
            "storage.blob_url: must be s3://bucket or s3://bucket/prefix; leave it empty for the "
            f"folder {FOLDER} in storage.data_dir"
        )
    from obstore.store import S3Store

    return BucketBlobs(
        S3Store(
            bucket,
            prefix=prefix.strip("/") or None,
            client_options={
                "allow_http": True,
                "connect_timeout": timedelta(seconds=5),
                "timeout": timedelta(seconds=60),
            },
            retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=15)},
        )
    )


class Blobs(ABC):
    """A blob store, whose keys are the ids of files."""

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


class FolderBlobs(Blobs):
    """Blobs as files of one folder, which only the gateway's own user can enter."""

    def __init__(self, folder: Path) -> None:
        super().__init__(_FOLDER_PART)
        self._folder = folder

    @cached_property
    def store(self) -> "ObjectStore":
        """The library's store for the folder; the library takes 4 MB, from the first upload on."""
        from obstore.store import LocalStore

        return LocalStore(self._folder)

    @classmethod
    def at(cls, folder: Path) -> Self:
        """Return the blob store of a folder, which is created if it is missing.

        Raises:
            SettingsError: the folder cannot be created.
        """
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"storage.data_dir: {folder}: {error.strerror}") from error
        return cls(folder)

    async def put(self, key: str, content: bytes) -> None:
        """Write a file, and sync it and its folder to disk, in one thread."""

        def put() -> None:
            self.store.put(key, content)
            _sync(self._folder / key, self._folder)

        with translate_errors():
            await asyncio.to_thread(put)

    async def sync(self, key: str) -> None:
        """Sync the file to disk, and then its folder."""
        with translate_errors():
            await asyncio.to_thread(_sync, self._folder / key, self._folder)

    @asynccontextmanager
    async def reading(
        self, key: str, first: int, length: int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read from one open file, which is several times as fast as with the library."""
        with translate_errors():
            file, piece = await asyncio.to_thread(
                _open_and_read, self._folder / key, first, min(_READ_AT_ONCE, length)
            )
        with file:
            yield self._pieces(file.fileno(), piece, key, first, length)

    async def delete(self, key: str) -> None:
        """Delete the file."""
        with suppress(BlobMissingError), translate_errors():
            await asyncio.to_thread(os.unlink, self._folder / key)

    async def entries(self) -> AsyncIterator[Sequence[BlobEntry]]:
        """List the folder itself: the library hides the incomplete files of a killed process."""
        with translate_errors():
            entries = await asyncio.to_thread(_scan, self._folder)
        for start in range(0, len(entries), _LIST_AT_ONCE):
            yield entries[start : start + _LIST_AT_ONCE]

    async def _pieces(
        self, descriptor: int, piece: bytes, key: str, first: int, length: int
    ) -> AsyncIterator[bytes]:
        """Yield the first piece, which has been read, and those that follow."""
        end = first + length
        while first < end:
            if not piece:
                raise _shorter(key)
            first += len(piece)
            yield piece
            if first < end:
                with translate_errors():
                    piece = await asyncio.to_thread(
                        os.pread, descriptor, min(_READ_AT_ONCE, end - first), first
                    )


class BucketBlobs(Blobs):
    """Blobs as objects of an S3 bucket, under a prefix."""

    def __init__(self, store: "S3Store") -> None:
        super().__init__(_S3_PART)
        self._store = store

    @property
    def store(self) -> "ObjectStore":
        """The bucket."""
        return self._store

    async def put(self, key: str, content: bytes) -> None:
        """Write an object."""
        with translate_errors():
            await self._store.put_async(key, content)

    async def sync(self, key: str) -> None:
        """Do nothing: an object is durable once it has been written."""

    @asynccontextmanager
    async def reading(
        self, key: str, first: int, length: int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read from one response of the server."""
        with translate_errors():
            if length == 0:
                await self._store.head_async(key)
                yield _nothing()
                return
            answer = await self._store.get_async(key, options={"range": (first, first + length)})
        yield self._pieces(answer, key, length)

    async def delete(self, key: str) -> None:
        """Delete the object."""
        with suppress(BlobMissingError), translate_errors():
            await self._store.delete_async(key)

    async def entries(self) -> AsyncIterator[Sequence[BlobEntry]]:
        """List the objects under the prefix."""
        with translate_errors():
            async for batch in self._store.list(chunk_size=_LIST_AT_ONCE):
                yield [
                    BlobEntry(item["path"], item["last_modified"].timestamp())
                    for item in batch
                    if _KEY.fullmatch(item["path"])
                ]

    async def _pieces(self, answer: "GetResult", key: str, length: int) -> AsyncIterator[bytes]:
        with translate_errors():
            async for large in answer.stream(min_chunk_size=PIECE):
                length -= len(large)
                for start in range(0, len(large), PIECE):
                    yield large[start : start + PIECE]
        if length:
            raise _shorter(key)


def _shorter(key: str) -> GatewayError:
    log.error("a blob is shorter than its file", extra={"key": key})
    return storage_unavailable()


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


def _open_and_read(path: Path, first: int, length: int) -> tuple[FileIO, bytes]:
    """Return an open file, which closes itself if nobody takes it, and the bytes at a place."""
    file = FileIO(path)
    return file, os.pread(file.fileno(), length, first)


def _sync(*paths: Path) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _scan(folder: Path) -> list[BlobEntry]:
    entries = []
    with os.scandir(folder) as listing:
        for item in listing:
            if _KEY.fullmatch(item.name):
                with suppress(FileNotFoundError):
                    entries.append(BlobEntry(item.name, item.stat().st_mtime))
    return entries
