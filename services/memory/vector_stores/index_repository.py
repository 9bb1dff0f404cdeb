"""Indexing the files of vector stores, in the database."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.memory.v1.vector_stores_pb2 import (
    VECTOR_STORE_FILE_STATE_COMPLETED,
    VECTOR_STORE_FILE_STATE_FAILED,
    VECTOR_STORE_FILE_STATE_IN_PROGRESS,
)
from services.common.storage.database import reading_once, write
from services.common.text.texts import fit
from services.memory.archive import index
from services.memory.archive.index import ArchivedTurn
from services.memory.jobs.job_queue import Job, JobQueue
from services.memory.storage.quota import lock_owner
from services.memory.vector_stores.file_rows import UNKNOWN, FileLimits, check_bytes, drop_texts
from services.memory.vector_stores.records import GAP, MAX_NUMBER, quota_exceeded
from services.memory.vector_stores.tables import vector_store_files, vector_stores

_MAX_MESSAGE: Final = 500
_CHUNKS_LIMIT: Final = "vector_stores.max_chunks"


class FileGoneError(Exception):
    """Error raised when a file is not to be indexed any more."""


class IndexRepository:
    """Files that are being indexed; every method raises `unavailable` without the database.

    Args:
        engine: the database.
        queue: the queue of background jobs.
        limits: limits of the files.
    """

    def __init__(self, engine: AsyncEngine, queue: JobQueue, limits: FileLimits) -> None:
        self._engine = engine
        self._queue = queue
        self._limits = limits

    async def pending(self, row_id: str) -> Row[Any] | None:
        """Return the row of a file that is to be indexed; None if it is not any more."""
        files = vector_store_files.c
        query = select(vector_store_files).where(
            files.id == row_id, files.state == VECTOR_STORE_FILE_STATE_IN_PROGRESS
        )
        async with reading_once(self._engine) as connection:
            return (await connection.execute(query)).one_or_none()

    async def begin(self, file: Row[Any], chunks: int, size: int) -> tuple[int, int]:
        """Reserve the numbers of the chunks of a file, unless they are reserved.

        Return the first number, and how many chunks are indexed already.

        Raises:
            FileGoneError: it is not to be indexed any more.
            GatewayError: storage_quota_exceeded.
        """

        async def transact(connection: AsyncConnection) -> tuple[int, int]:
            await lock_owner(connection, file.user_id)
            store = (
                await connection.execute(
                    select(vector_stores)
                    .where(vector_stores.c.id == file.store_id)
                    .with_for_update(key_share=True)
                )
            ).one_or_none()
            row = await self._lock(connection, file)
            if store is None:
                raise FileGoneError
            if row.first_chunk != UNKNOWN and row.chunks == chunks:
                return row.first_chunk, row.indexed
            await drop_texts(connection, self._queue, vector_store_files.c.id == file.id)
            await self._check_room(connection, file, chunks, size)
            first = store.next_chunk
            if first + chunks > MAX_NUMBER:
                raise quota_exceeded(
                    f"the vector store has had {MAX_NUMBER:,} chunks; create a new one", ""
                )
            await connection.execute(
                update(vector_stores)
                .where(vector_stores.c.id == store.id)
                .values(next_chunk=first + chunks + GAP)
            )
            reserved = {"first_chunk": first, "chunks": chunks, "indexed": 0, "usage_bytes": size}
            await connection.execute(_change(file.id, reserved))
            return first, 0

        return await write(self._engine, transact)

    async def add_chunks(
        self,
        file: Row[Any],
        turns: Sequence[ArchivedTurn],
        indexed: int,
        model: str,
        vectors: Mapping[int, Sequence[float]],
    ) -> None:
        """Index some chunks of a file; `indexed` chunks are then indexed in all.

        Raises:
            FileGoneError: it is not to be indexed any more.
        """

        async def transact(connection: AsyncConnection) -> None:
            await self._lock(connection, file)
            await index.add(connection, file.user_id, file.store_id, turns)
            if vectors:
                await index.add_vectors(connection, file.store_id, model, vectors)
            await connection.execute(_change(file.id, {"indexed": indexed}))

        await write(self._engine, transact)

    async def complete(self, file: Row[Any], job: Job) -> None:
        """Mark a file as indexed, and finish its job.

        Raises:
            FileGoneError: it is not to be indexed any more.
            JobLostError: another process has the job.
        """
        await self._end(file, job, {"state": VECTOR_STORE_FILE_STATE_COMPLETED})

    async def fail(self, file: Row[Any], job: Job, code: str, message: str) -> None:
        """Mark a file as failed, and finish its job.

        Raises:
            FileGoneError, JobLostError: as `complete`.
        """
        failed = {
            "state": VECTOR_STORE_FILE_STATE_FAILED,
            "error_code": code,
            "error_message": fit(message.replace("\0", ""), _MAX_MESSAGE),
            "usage_bytes": 0,
            "first_chunk": UNKNOWN,
            "chunks": 0,
        }
        await self._end(file, job, failed)

    async def remove_texts(self, store_id: str, first: int, end: int, most: int) -> int:
        """Remove up to `most` chunks of a range from the index; return how many there were."""
        return await write(
            self._engine,
            lambda connection: index.remove_between(connection, store_id, first, end, most),
        )

    async def finish(self, job: Job) -> None:
        """Finish a job.

        Raises:
            JobLostError: another process has it.
        """
        await write(self._engine, lambda connection: self._queue.finish(connection, job))

    async def _check_room(
        self, connection: AsyncConnection, file: Row[Any], chunks: int, size: int
    ) -> None:
        files = vector_store_files.c
        counted = select(func.sum(files.chunks)).where(
            files.store_id == file.store_id, files.id != file.id
        )
        if int(await connection.scalar(counted) or 0) + chunks > self._limits.max_chunks:
            raise quota_exceeded(
                f"a vector store has at most {self._limits.max_chunks:,} chunks", _CHUNKS_LIMIT
            )
        await check_bytes(connection, self._limits, file.user_id, size)

    async def _end(self, file: Row[Any], job: Job, values: Mapping[str, object]) -> None:
        async def transact(connection: AsyncConnection) -> None:
            row = await self._lock(connection, file)
            if values["state"] != VECTOR_STORE_FILE_STATE_COMPLETED:
                which = vector_store_files.c.id == row.id
                await drop_texts(connection, self._queue, which)
            await connection.execute(_change(file.id, values))
            await self._queue.finish(connection, job)

        await write(self._engine, transact)

    async def _lock(self, connection: AsyncConnection, file: Row[Any]) -> Row[Any]:
        """Lock a file that is to be indexed until the transaction ends; return its row."""
        files = vector_store_files.c
        query = select(vector_store_files).where(
            files.id == file.id, files.state == VECTOR_STORE_FILE_STATE_IN_PROGRESS
        )
        row = (await connection.execute(query.with_for_update(key_share=True))).one_or_none()
        if row is None:
            raise FileGoneError
        return row


def _change(row_id: str, values: Mapping[str, object]) -> Any:
    return update(vector_store_files).where(vector_store_files.c.id == row_id).values(values)
