"""Stores of data that can be recomputed: a local folder or an S3 bucket.

They hold conversions of media and cached answers. Keys have the form `owner/hash`. Entries are
deleted when they are old, when their owner has too many bytes, and when the total is too large,
oldest first. Any entry may be lost.
"""

import asyncio
import logging
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.process.byte_budget import Admit
from services.common.settings import Storage
from services.common.storage.disk import DiskReserve

if TYPE_CHECKING:
    from obstore.store import S3Store

log = logging.getLogger(__name__)


class StoredBytes(NamedTuple):
    """A stored entry: its key, its size in bytes, and its modification time in Unix seconds."""

    key: str
    size: int
    modified_s: float

    @property
    def owner(self) -> str:
        """The owner part of the key."""
        return self.key.partition("/")[0]


class ByteStore(ABC):
    """A store of bytes whose entries can be listed and deleted."""

    @abstractmethod
    async def get(self, key: str, admit: Admit | None = None) -> bytes | None:
        """Return the content stored under a key, or None.

        Args:
            key: the key.
            admit: called with the size of the content before it is read.

        Raises:
            GatewayError: storage_unavailable; as `admit`.
        """

    @abstractmethod
    async def put(self, key: str, content: bytes) -> None:
        """Store content under a key, atomically.

        Raises:
            GatewayError: storage_unavailable; storage_full.
        """

    @abstractmethod
    async def delete(self, keys: Iterable[str]) -> None:
        """Delete keys; missing ones are ignored.

        Raises:
            GatewayError: storage_unavailable.
        """

    @abstractmethod
    async def entries(self, owner: str = "") -> list[StoredBytes]:
        """Return the entries of an owner, or all entries for "", in any order.

        Raises:
            GatewayError: storage_unavailable.
        """


def open_store(storage: Storage, reserve: DiskReserve, name: str) -> ByteStore:
    """Return a store next to that of files; nothing is created or connected yet.

    Args:
        storage: the settings of storage.
        reserve: the free disk space to leave.
        name: the name of its folder.
    """
    if not storage.blob_url:
        return Folder(storage.data_dir / name, reserve)
    bucket, _, prefix = storage.blob_url.partition("://")[2].partition("/")
    return Bucket(bucket, f"{prefix.strip('/')}/{name}".lstrip("/"))


class Folder(ByteStore):
    """Entries as files in one folder with mode 0700.

    Args:
        folder: the folder; created with the first entry.
        reserve: the free disk space to leave.
    """

    def __init__(self, folder: Path, reserve: DiskReserve) -> None:
        self._folder = folder
        self._reserve = reserve

    async def get(self, key: str, admit: Admit | None = None) -> bytes | None:
        """Read a file."""
        path = self._folder / key
        try:
            if admit is not None:
                await admit((await asyncio.to_thread(path.stat)).st_size)
            return await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unavailable(error) from error

    async def put(self, key: str, content: bytes) -> None:
        """Write a file under a temporary name, then rename it."""
        self._reserve.check()
        try:
            await asyncio.to_thread(_write, self._folder / key, content)
        except OSError as error:
            raise _unavailable(error) from error

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete files."""
        try:
            await asyncio.to_thread(_unlink, [self._folder / key for key in keys])
        except OSError as error:
            raise _unavailable(error) from error

    async def entries(self, owner: str = "") -> list[StoredBytes]:
        """List the folder, including temporary files that a killed process left."""
        try:
            return await asyncio.to_thread(lambda: list(_scan(self._folder, owner)))
        except OSError as error:
            raise _unavailable(error) from error


class Bucket(ByteStore):
    """Entries as objects of an S3 bucket, under a prefix."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = prefix

    @cached_property
    def _store(self) -> "S3Store":
        from obstore.store import S3Store

        return S3Store(
            self._bucket,
            prefix=self._prefix,
            client_options={
                "allow_http": True,
                "connect_timeout": timedelta(seconds=5),
                "timeout": timedelta(seconds=60),
            },
            retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=5)},
        )

    async def get(self, key: str, admit: Admit | None = None) -> bytes | None:
        """Read an object."""
        from obstore.exceptions import BaseError

        try:
            answer = await self._store.get_async(key)
            if admit is not None:
                await admit(answer.meta["size"])
            return bytes(await answer.bytes_async())
        except FileNotFoundError:
            return None
        except BaseError as error:
            raise _unavailable(error) from error

    async def put(self, key: str, content: bytes) -> None:
        """Put an object."""
        from obstore.exceptions import BaseError

        try:
            await self._store.put_async(key, content)
        except BaseError as error:
            raise _unavailable(error) from error

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete objects."""
        from obstore.exceptions import BaseError

        try:
            for key in keys:
                with suppress(FileNotFoundError):
                    await self._store.delete_async(key)
        except BaseError as error:
            raise _unavailable(error) from error

    async def entries(self, owner: str = "") -> list[StoredBytes]:
        """List the objects under the prefix."""
        from obstore.exceptions import BaseError

        try:
            return [
                StoredBytes(one["path"], one["size"], one["last_modified"].timestamp())
                async for batch in self._store.list(owner or None, chunk_size=1000)
                for one in batch
            ]
        except BaseError as error:
            raise _unavailable(error) from error


class StoreLimits(NamedTuple):
    """Limits on the age and size of a store.

    Attributes:
        kept_s: maximum age in seconds.
        kept_bytes: maximum bytes of all owners together.
        kept_bytes_per_owner: maximum bytes of one owner.
    """

    kept_s: float
    kept_bytes: int
    kept_bytes_per_owner: int


def overdue(entries: Iterable[StoredBytes], now_s: float, bounds: StoreLimits) -> list[str]:
    """Return the keys to delete: old entries, then the oldest beyond the bounds. Pure."""
    going: list[str] = []
    total = 0
    by_owner: dict[str, int] = {}
    for one in sorted(entries, key=lambda entry: entry.modified_s, reverse=True):
        total += one.size
        by_owner[one.owner] = by_owner.get(one.owner, 0) + one.size
        if (
            one.modified_s < now_s - bounds.kept_s
            or by_owner[one.owner] > bounds.kept_bytes_per_owner
            or total > bounds.kept_bytes
        ):
            going.append(one.key)
            total -= one.size
            by_owner[one.owner] -= one.size
    return going


def _unavailable(error: Exception) -> GatewayError:
    log.warning("a store cannot be read or written", extra={"store": str(error)})
    return GatewayError(errors_pb2.REASON_STORAGE_UNAVAILABLE, "the store is unavailable")


def _write(path: Path, content: bytes) -> None:
    path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _unlink(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()  # removes the owner's folder if it is empty


def _scan(folder: Path, owner: str) -> Iterator[StoredBytes]:
    if not folder.is_dir():
        return
    names = [owner] if owner else [one.name for one in os.scandir(folder) if _is_folder(one)]
    for name in names:
        with suppress(FileNotFoundError):
            for one in os.scandir(folder / name):
                status = one.stat()
                yield StoredBytes(f"{name}/{one.name}", status.st_size, status.st_mtime)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)
