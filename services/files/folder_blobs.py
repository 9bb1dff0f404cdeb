"""Blobs as files of a local folder."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Self

from services.common.settings import SettingsError
from services.files.blob_errors import BlobMissingError, translate_errors
from services.files.blob_store import BLOB_KEY, LIST_AT_ONCE, BlobEntry, Blobs, shorter_blob

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# Bytes written at a time.
_PART = 256 << 10
# Bytes read at a time: they stay in memory until their reader takes them.
_READ_AT_ONCE = 256 << 10


class FolderBlobs(Blobs):
    """Blobs as files of one folder, which only the gateway's own user can enter."""

    def __init__(self, folder: Path) -> None:
        super().__init__(_PART)
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
        for start in range(0, len(entries), LIST_AT_ONCE):
            yield entries[start : start + LIST_AT_ONCE]

    async def _pieces(
        self, descriptor: int, piece: bytes, key: str, first: int, length: int
    ) -> AsyncIterator[bytes]:
        """Yield the first piece, which has been read, and those that follow."""
        end = first + length
        while first < end:
            if not piece:
                raise shorter_blob(key)
            first += len(piece)
            yield piece
            if first < end:
                with translate_errors():
                    piece = await asyncio.to_thread(
                        os.pread, descriptor, min(_READ_AT_ONCE, end - first), first
                    )


class _OpenFile(FileIO):
    """An open file. Its reader may have gone before it was opened: then it closes itself."""

    def __del__(self) -> None:
        self.close()


def _open_and_read(path: Path, first: int, length: int) -> tuple[FileIO, bytes]:
    """Return an open file, and the bytes at a place."""
    file = _OpenFile(path)
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
            if BLOB_KEY.fullmatch(item.name):
                with suppress(FileNotFoundError):
                    entries.append(BlobEntry(item.name, item.stat().st_mtime))
    return entries
