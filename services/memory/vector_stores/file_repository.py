"""The files of vector stores in the database: adding, reading and removing them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, and_, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.memory.v1.vector_stores_pb2 import (
    VECTOR_STORE_FILE_STATE_CANCELLED,
    VECTOR_STORE_FILE_STATE_COMPLETED,
    VECTOR_STORE_FILE_STATE_IN_PROGRESS,
    ListVectorStoreFilesRequest,
    NewVectorStoreFile,
    VectorStoreFile,
    VectorStoreFileBatch,
)
from services.common import ids
from services.common.clock import Clock
from services.common.grpc.authentication import Caller
from services.common.storage.database import execute_many, reading_once, write
from services.memory.jobs.job_queue import JobKind, JobQueue
from services.memory.storage.quota import lock_owner
from services.memory.storage.tables import archived_turns
from services.memory.vector_stores.file_rows import UNKNOWN, FileLimits, check_bytes, drop_texts
from services.memory.vector_stores.records import (
    BATCH_PREFIX,
    DEFAULT_CHUNKING,
    FILE_PREFIX,
    batch_not_found,
    batch_of,
    expired,
    expiry_ms,
    file_not_found,
    file_of,
    has_expired,
    quota_exceeded,
    store_not_found,
)
from services.memory.vector_stores.store_repository import lock_store, page_of, totals_by
from services.memory.vector_stores.tables import (
    vector_store_batches,
    vector_store_files,
    vector_stores,
)

_STORE_ID: Final = "vector_store_id"
_FILES_LIMIT: Final = "vector_stores.max_files"


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file to add, with the name that it has in the file store."""

    new: NewVectorStoreFile
    filename: str


@dataclass(frozen=True, slots=True)
class SearchedFile:
    """An indexed file: its chunks have the numbers from `first` on, below `end`."""

    store_id: str
    file_id: str
    filename: str
    attributes: bytes
    first: int
    end: int


class VectorStoreFileRepository:
    """The files; every method raises `unavailable` when the database does not answer.

    Args:
        engine: the database.
        clock: the clock.
        queue: the queue of background jobs.
        limits: their limits.
        new_id: makes ids.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        queue: JobQueue,
        limits: FileLimits,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._queue = queue
        self._limits = limits
        self._new_id = new_id

    async def add(
        self, owner: Caller, store_id: str, added: Sequence[AddedFile], *, is_batch: bool
    ) -> str:
        """Add files, and the jobs that index them; return the id of their batch, or "".

        Files that are in the vector store are replaced.

        Raises:
            GatewayError: not_found; invalid, the vector store has expired;
                storage_quota_exceeded.
        """
        now_ms = self._clock.now_ms()
        batch_id = self._new_id(BATCH_PREFIX) if is_batch else ""
        rows = [self._row(owner, store_id, one, batch_id, now_ms) for one in added]

        async def transact(connection: AsyncConnection) -> None:
            await lock_owner(connection, owner.user_id)
            store = await lock_store(connection, owner.user_id, store_id, _STORE_ID)
            if has_expired(store, now_ms):
                raise expired(_STORE_ID)
            in_store = vector_store_files.c.store_id == store_id
            file_ids = [one.new.file_id for one in added]
            replaced = and_(in_store, vector_store_files.c.file_id.in_(file_ids))
            await self._remove(connection, replaced)
            await self._check_limits(connection, owner.user_id, in_store, len(rows))
            if is_batch:
                batch = {"id": batch_id, "store_id": store_id, "is_cancelled": False}
                statement = insert(vector_store_batches)
                await connection.execute(statement, {**batch, "created_at_ms": now_ms})
            await execute_many(connection, insert(vector_store_files), rows)
            for row in rows:
                await self._queue.put(
                    connection, JobKind.INDEX, owner.user_id, None, text=str(row["id"])
                )
            expires_at_ms = expiry_ms(store.expires_after_days, now_ms)
            active = {"last_active_at_ms": now_ms, "expires_at_ms": expires_at_ms}
            await connection.execute(
                update(vector_stores).where(vector_stores.c.id == store_id).values(active)
            )

        await write(self._engine, transact)
        return batch_id

    async def find(self, user_id: str, store_id: str, file_id: str) -> VectorStoreFile:
        """Return a file.

        Raises:
            GatewayError: not_found.
        """
        return file_of(await self._found(user_id, store_id, file_id))

    async def page(
        self, user_id: str, request: ListVectorStoreFilesRequest
    ) -> tuple[list[VectorStoreFile], bool]:
        """Return a page of files, and whether there are more.

        Raises:
            GatewayError: not_found; invalid, a cursor is not a file of the vector store.
        """
        if request.batch_id:
            await self.batch(user_id, request.vector_store_id, request.batch_id)
        else:
            await self._check_store(user_id, request.vector_store_id)
        files = vector_store_files.c
        in_store = files.store_id == request.vector_store_id
        query = select(vector_store_files).where(in_store)
        if request.batch_id:
            query = query.where(files.batch_id == request.batch_id)
        if request.state:
            query = query.where(files.state == request.state)

        def at(cursor: str) -> ColumnElement[bool]:
            return and_(in_store, files.file_id == cursor)

        rows, has_more = await page_of(self._engine, query, files.id, request.page, at)
        return [file_of(row) for row in rows], has_more

    async def set_attributes(
        self, user_id: str, store_id: str, file_id: str, attributes: bytes
    ) -> None:
        """Replace the attributes of a file.

        Raises:
            GatewayError: not_found.
        """
        changed = update(vector_store_files).where(_is_file(user_id, store_id, file_id))
        statement = changed.values(attributes=attributes)
        result = await write(self._engine, lambda connection: connection.execute(statement))
        if not result.rowcount:
            await self._check_store(user_id, store_id)
            raise file_not_found()

    async def remove(self, user_id: str, store_id: str, file_id: str) -> None:
        """Remove a file; a job removes its text from the index.

        Raises:
            GatewayError: not_found.
        """
        is_file = _is_file(user_id, store_id, file_id)
        if not await write(self._engine, lambda connection: self._remove(connection, is_file)):
            await self._check_store(user_id, store_id)
            raise file_not_found()

    async def texts(
        self, user_id: str, store_id: str, file_id: str, first: int, most: int
    ) -> tuple[list[str], bool]:
        """Return the texts of some chunks of a file, and whether there are more.

        Raises:
            GatewayError: not_found.
        """
        row = await self._found(user_id, store_id, file_id)
        if row.state != VECTOR_STORE_FILE_STATE_COMPLETED:
            return [], False
        begin = row.first_chunk + min(first, row.chunks)
        end = min(begin + most, row.first_chunk + row.chunks)
        turns = archived_turns.c
        query = (
            select(turns.text)
            .where(turns.entity_id == store_id, turns.turn >= begin, turns.turn < end)
            .order_by(turns.turn)
        )
        async with reading_once(self._engine) as connection:
            texts = list(await connection.scalars(query))
        return texts, end < row.first_chunk + row.chunks

    async def batch(self, user_id: str, store_id: str, batch_id: str) -> VectorStoreFileBatch:
        """Return a batch of files.

        Raises:
            GatewayError: not_found.
        """
        await self._check_store(user_id, store_id)
        batches = vector_store_batches.c
        query = select(vector_store_batches).where(
            batches.id == batch_id, batches.store_id == store_id
        )
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise batch_not_found()
        totals = await totals_by(self._engine, vector_store_files.c.batch_id, [batch_id])
        return batch_of(row, totals[batch_id])

    async def cancel_batch(self, user_id: str, store_id: str, batch_id: str) -> None:
        """Cancel the files of a batch that are not indexed yet; one without such stays as it is.

        Raises:
            GatewayError: not_found.
        """
        await self.batch(user_id, store_id, batch_id)
        files = vector_store_files.c
        waiting = and_(
            files.batch_id == batch_id, files.state == VECTOR_STORE_FILE_STATE_IN_PROGRESS
        )

        async def transact(connection: AsyncConnection) -> None:
            await lock_store(connection, user_id, store_id, _STORE_ID)
            await drop_texts(connection, self._queue, waiting)
            cancelled = {
                "state": VECTOR_STORE_FILE_STATE_CANCELLED,
                "first_chunk": UNKNOWN,
                "chunks": 0,
            }
            changed = update(vector_store_files).where(waiting).values(cancelled)
            if (await connection.execute(changed)).rowcount:
                marked = update(vector_store_batches).where(vector_store_batches.c.id == batch_id)
                await connection.execute(marked.values(is_cancelled=True))

        await write(self._engine, transact)

    async def searched(self, store_ids: Sequence[str]) -> list[SearchedFile]:
        """Return the indexed files of vector stores, by their numbers."""
        files = vector_store_files.c
        query = (
            select(
                *(files.store_id, files.file_id, files.filename, files.attributes),
                *(files.first_chunk, (files.first_chunk + files.chunks).label("end")),
            )
            .where(files.store_id.in_(store_ids), files.state == VECTOR_STORE_FILE_STATE_COMPLETED)
            .order_by(files.store_id, files.first_chunk)
        )
        async with reading_once(self._engine) as connection:
            return [SearchedFile(*row) for row in await connection.execute(query)]

    def _row(
        self, owner: Caller, store_id: str, added: AddedFile, batch_id: str, now_ms: int
    ) -> dict[str, object]:
        new = added.new
        chunking = new.chunking if new.HasField("chunking") else DEFAULT_CHUNKING
        return {
            "id": self._new_id(FILE_PREFIX),
            "store_id": store_id,
            "user_id": owner.user_id,
            "key_id": owner.key_id,
            "file_id": new.file_id,
            "batch_id": batch_id,
            "filename": added.filename,
            "state": VECTOR_STORE_FILE_STATE_IN_PROGRESS,
            "error_code": "",
            "error_message": "",
            "attributes": new.attributes,
            "max_chunk_tokens": chunking.max_chunk_tokens,
            "overlap_tokens": chunking.overlap_tokens,
            "first_chunk": UNKNOWN,
            **dict.fromkeys(("chunks", "indexed", "usage_bytes"), 0),
            "created_at_ms": now_ms,
        }

    async def _check_limits(
        self, connection: AsyncConnection, user_id: str, in_store: ColumnElement[bool], added: int
    ) -> None:
        counted = select(func.count()).select_from(vector_store_files).where(in_store)
        if (await connection.scalar(counted) or 0) + added > self._limits.max_files:
            raise quota_exceeded(
                f"a vector store has at most {self._limits.max_files:,} files", _FILES_LIMIT
            )
        await check_bytes(connection, self._limits, user_id, 1)

    async def _remove(self, connection: AsyncConnection, which: ColumnElement[bool]) -> int:
        """Remove files; return how many there were."""
        await drop_texts(connection, self._queue, which)
        return (await connection.execute(delete(vector_store_files).where(which))).rowcount

    async def _found(self, user_id: str, store_id: str, file_id: str) -> Row[Any]:
        await self._check_store(user_id, store_id)
        query = select(vector_store_files).where(_is_file(user_id, store_id, file_id))
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise file_not_found()
        return row

    async def _check_store(self, user_id: str, store_id: str) -> None:
        stores = vector_stores.c
        query = select(stores.id).where(
            stores.id == store_id, stores.user_id == user_id, ~stores.is_deleted
        )
        async with reading_once(self._engine) as connection:
            if await connection.scalar(query) is None:
                raise store_not_found(_STORE_ID)


def _is_file(user_id: str, store_id: str, file_id: str) -> ColumnElement[bool]:
    files = vector_store_files.c
    return and_(files.user_id == user_id, files.store_id == store_id, files.file_id == file_id)
