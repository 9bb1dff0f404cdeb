"""Blobs as objects of a bucket of an S3 server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from services.files.blob_errors import BlobMissingError, translate_errors
from services.files.blob_store import (
    BLOB_KEY,
    LIST_AT_ONCE,
    PIECE,
    BlobEntry,
    Blobs,
    shorter_blob,
)

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ObjectStore, S3Store

# Minimum size in bytes of a part of a multipart upload.
_PART = 5 << 20


class BucketBlobs(Blobs):
    """Blobs as objects of an S3 bucket, under a prefix."""

    def __init__(self, store: "S3Store") -> None:
        super().__init__(_PART)
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
            async for batch in self._store.list(chunk_size=LIST_AT_ONCE):
                yield [
                    BlobEntry(item["path"], item["last_modified"].timestamp())
                    for item in batch
                    if BLOB_KEY.fullmatch(item["path"])
                ]

    async def _pieces(self, answer: "GetResult", key: str, length: int) -> AsyncIterator[bytes]:
        with translate_errors():
            async for large in answer.stream(min_chunk_size=PIECE):
                length -= len(large)
                for start in range(0, len(large), PIECE):
                    yield large[start : start + PIECE]
        if length:
            raise shorter_blob(key)


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""
