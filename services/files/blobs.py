"""Blob stores for the bytes of files: a local folder, or a bucket of an S3 server.

A blob appears whole under its key or not at all, and is on disk once its writing is
finished. Nothing here holds more than a few MiB of one. What a store says when it does
not work is logged; callers hear `storage_unavailable`, and the next call tries afresh.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from services.common.errors import GatewayError
from services.common.settings import SettingsError, Storage
from services.files.blob_errors import BlobMissingError, storage_unavailable, translated

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ObjectStore, S3Store

FOLDER = "files"
# The most bytes that are taken from the caller, or given, at a time.
PIECE = 1 << 20
# Bytes that a folder takes at a time.
_FOLDER_PART = 256 << 10
# Bytes of a folder's file that are read at a time: each waits for its reader in memory.
_READ_AT_ONCE = 256 << 10
# What S3 takes as the smallest part of a larger upload.
_S3_PART = 5 << 20
_LIST_AT_ONCE = 1000
# How long an upload that was given up may take to clean up before it is left alone.
_ABANDON_S = 5.0
# Keys of ours; a part that a killed process left in the folder has a number behind it.
_KEY = re.compile(r"file-[0-9A-Z]{26}(#[0-9]+)?", re.ASCII)

log = logging.getLogger(__name__)


class Entry(NamedTuple):
    """A blob, or the beginning of one: its key and when it was last written, Unix seconds."""

    key: str
    modified_s: float


class _AbandonedError(Exception):
    """Error raised in the store when the rest of a blob will not come."""


def open_blobs(storage: Storage) -> "Blobs":
    """Return the store that the settings name; nothing is connected yet.

    Credentials, region and endpoint of S3 come from the usual AWS_… variables.

    Raises:
        SettingsError: `storage.blob_url` is no address of a bucket, or the folder cannot
            be made.
    """
    if not storage.blob_url:
        return FolderBlobs.at(storage.data_dir / FOLDER)
    scheme, _, place = storage.blob_url.partition("://")
    bucket, _, prefix = place.partition("/")
    if scheme != "s3" or not bucket:
        raise SettingsError(
            "storage.blob_url: takes s3://bucket or s3://bucket/prefix; "
            f"leave it empty for the folder {FOLDER} in storage.data_dir"
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
    """Bytes under keys; the keys are ids of files."""

    def __init__(self, part_size: int) -> None:
        self._part_size = part_size

    @property
    @abstractmethod
    def store(self) -> "ObjectStore":
        """What puts them; without it there is nothing to put."""

    @asynccontextmanager
    async def writing(self, key: str) -> AsyncIterator["Writing"]:
        """Write a blob; unless its writing was finished in the block, nothing of it stays.

        Raises:
            GatewayError: storage_unavailable, when the store cannot write now.
        """
        with translated():
            store = self.store
        writing = Writing(self, store, key, self._part_size)
        try:
            yield writing
        except BaseException:
            await writing.abandon()
            raise

    @abstractmethod
    async def settle(self, key: str) -> None:
        """Make a blob that was just put survive a power cut."""

    @abstractmethod
    def reading(
        self, key: str, first: int, length: int
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read `length` bytes from the byte `first` on, in pieces of at most `PIECE`.

        A reading that has begun goes on when the blob is deleted.

        Raises:
            BlobMissingError: there is no such blob.
            GatewayError: storage_unavailable, when the store cannot read now.
        """

    @abstractmethod
    async def delete(self, key: str) -> None:
        """Delete a blob, or the beginning of one; one that is not there is fine.

        Raises:
            GatewayError: storage_unavailable, when the store cannot write now.
        """

    @abstractmethod
    def entries(self) -> AsyncIterator[Sequence[Entry]]:
        """List what there is under keys of ours, a batch at a time, in any order.

        Raises:
            GatewayError: storage_unavailable, when the store cannot read now.
        """


class Writing:
    """One blob on its way into the store.

    The store pulls; here it is pushed, with one piece waiting at most. What is
    short is put at once: on S3 that is one request instead of three.
    """

    def __init__(self, blobs: Blobs, store: "ObjectStore", key: str, part_size: int) -> None:
        self._blobs = blobs
        self._store = store
        self._key = key
        self._part_size = part_size
        self._held = bytearray()
        self._handover: _Handover | None = None
        self._putting: asyncio.Future[Any] | None = None

    async def write(self, piece: bytes) -> None:
        """Write the next bytes; return when there is room for more.

        Raises:
            GatewayError: storage_unavailable, when the store cannot write now.
        """
        if self._handover is None:
            self._held += piece
            if len(self._held) <= min(self._part_size, PIECE):
                return
            piece = bytes(self._held)
            self._held.clear()
            self._handover = self._begin()
        await self._hand_over(piece)

    async def finish(self) -> None:
        """Put the rest; afterwards the blob is there, and stays.

        Raises:
            GatewayError: storage_unavailable, when the store cannot write now.
        """
        if self._handover is None:
            with translated():
                await self._store.put_async(self._key, bytes(self._held))
        else:
            await self._hand_over(None)
            assert self._putting is not None
            with translated():
                await asyncio.shield(self._putting)
        await self._blobs.settle(self._key)

    async def abandon(self) -> None:
        """Abort: the store forgets what it had taken, and a blob already there is deleted."""
        if self._putting is not None and self._handover is not None:
            self._handover.give(_AbandonedError())
            await asyncio.wait([self._putting], timeout=_ABANDON_S)
        with suppress(GatewayError):
            await self._blobs.delete(self._key)

    def _begin(self) -> "_Handover":
        handover = _Handover()
        putting = asyncio.ensure_future(
            self._store.put_async(
                self._key, handover, chunk_size=self._part_size, max_concurrency=1
            )
        )
        putting.add_done_callback(handover.close)
        self._putting = putting
        return handover

    async def _hand_over(self, piece: bytes | None) -> None:
        assert self._handover is not None
        assert self._putting is not None
        await self._handover.room.wait()
        if self._putting.done():
            with translated():
                self._putting.result()
        self._handover.give(piece)


class _Handover:
    """Hands pieces to a store that pulls them; None is the end, an exception a failure.

    Attributes:
        room: set while the next piece may be given, or nobody will take it any more.
    """

    def __init__(self) -> None:
        self.room = asyncio.Event()
        self.room.set()
        self._given = asyncio.Event()
        self._piece: bytes | Exception | None = None

    def give(self, piece: bytes | Exception | None) -> None:
        self._piece = piece
        self.room.clear()
        self._given.set()

    def close(self, putting: "asyncio.Future[Any]") -> None:
        if not putting.cancelled():
            putting.exception()  # seen here, for the case that nobody waits any more
        self.room.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        await self._given.wait()
        self._given.clear()
        piece, self._piece = self._piece, None
        if piece is None:
            raise StopAsyncIteration
        if isinstance(piece, Exception):
            raise piece
        self.room.set()
        return piece


class FolderBlobs(Blobs):
    """Blobs as files of one folder, which only the gateway's own user can enter."""

    def __init__(self, folder: Path) -> None:
        super().__init__(_FOLDER_PART)
        self._folder = folder

    @cached_property
    def store(self) -> "ObjectStore":
        """What writes into the folder; the library, of 4 MB, comes with the first upload."""
        from obstore.store import LocalStore

        return LocalStore(self._folder)

    @classmethod
    def at(cls, folder: Path) -> Self:
        """Return the blobs of a folder, which is made when it is missing.

        Raises:
            SettingsError: it cannot be made.
        """
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"storage.data_dir: {folder}: {error.strerror}") from error
        return cls(folder)

    async def settle(self, key: str) -> None:
        """Write through to the disk: first the bytes, then the name."""
        with translated():
            for path in (self._folder / key, self._folder):
                await asyncio.to_thread(_sync, path)

    @asynccontextmanager
    async def reading(
        self, key: str, first: int, length: int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read from one open file: several times as fast as through the library."""
        with translated():
            descriptor = await asyncio.to_thread(os.open, self._folder / key, os.O_RDONLY)
        try:
            yield self._pieces(descriptor, key, first, length)
        finally:
            os.close(descriptor)

    async def delete(self, key: str) -> None:
        """Delete the file."""
        with suppress(BlobMissingError), translated():
            await asyncio.to_thread(os.unlink, self._folder / key)

    async def entries(self) -> AsyncIterator[Sequence[Entry]]:
        """List the folder itself: the library hides what a killed process left behind."""
        with translated():
            found = await asyncio.to_thread(_scan, self._folder)
        for start in range(0, len(found), _LIST_AT_ONCE):
            yield found[start : start + _LIST_AT_ONCE]

    async def _pieces(
        self, descriptor: int, key: str, first: int, length: int
    ) -> AsyncIterator[bytes]:
        end = first + length
        while first < end:
            with translated():
                piece = await asyncio.to_thread(
                    os.pread, descriptor, min(_READ_AT_ONCE, end - first), first
                )
            if not piece:
                raise _shorter(key)
            first += len(piece)
            yield piece


class BucketBlobs(Blobs):
    """Blobs as objects of an S3 bucket, under a prefix."""

    def __init__(self, store: "S3Store") -> None:
        super().__init__(_S3_PART)
        self._store = store

    @property
    def store(self) -> "ObjectStore":
        """The bucket."""
        return self._store

    async def settle(self, key: str) -> None:
        """Do nothing: an object that was put is kept."""

    @asynccontextmanager
    async def reading(
        self, key: str, first: int, length: int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read from one answer of the server."""
        with translated():
            if length == 0:
                await self._store.head_async(key)
                yield _nothing()
                return
            answer = await self._store.get_async(key, options={"range": (first, first + length)})
        yield self._pieces(answer, key, length)

    async def delete(self, key: str) -> None:
        """Delete the object."""
        with suppress(BlobMissingError), translated():
            await self._store.delete_async(key)

    async def entries(self) -> AsyncIterator[Sequence[Entry]]:
        """List the objects under the prefix."""
        with translated():
            async for batch in self._store.list(chunk_size=_LIST_AT_ONCE):
                yield [
                    Entry(one["path"], one["last_modified"].timestamp())
                    for one in batch
                    if _KEY.fullmatch(one["path"])
                ]

    async def _pieces(self, answer: "GetResult", key: str, length: int) -> AsyncIterator[bytes]:
        with translated():
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


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _scan(folder: Path) -> list[Entry]:
    found = []
    with os.scandir(folder) as listing:
        for one in listing:
            if _KEY.fullmatch(one.name):
                with suppress(FileNotFoundError):
                    found.append(Entry(one.name, one.stat().st_mtime))
    return found
