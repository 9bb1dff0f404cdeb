"""The vector stores of all users in the database."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.memory.v1.vector_stores_pb2 import (
    CreateVectorStoreRequest,
    PageRequest,
    UpdateVectorStoreRequest,
    VectorStore,
    VectorStoreFileState,
)
from services.common import ids
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.storage.database import reading_once, write
from services.memory.archive import index
from services.memory.jobs.job_queue import JobKind, JobQueue
from services.memory.storage.quota import lock_owner
from services.memory.vector_stores.records import (
    STORE_PREFIX,
    Totals,
    expiry_ms,
    has_expired,
    quota_exceeded,
    store_not_found,
    store_of,
    totals_of,
)
from services.memory.vector_stores.tables import (
    vector_store_batches,
    vector_store_files,
    vector_stores,
)

# Time after which a search is recorded as the last activity again.
_ACTIVITY_MS = 60_000
# Expired vector stores that are emptied in a transaction.
_EXPIRED_AT_ONCE = 20
# The range of all chunks.
ALL_CHUNKS = (0, 1 << 40)
_LIMIT = "vector_stores.max_per_user"

_States = dict[VectorStoreFileState.ValueType, tuple[int, int]]


class StoreRepository:
    """The vector stores; every method raises `unavailable` when the database does not answer.

    Args:
        engine: the database.
        clock: the clock.
        queue: the queue of background jobs.
        max_stores: maximum number of vector stores of a user.
        new_id: makes ids.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        queue: JobQueue,
        max_stores: int,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._queue = queue
        self._max_stores = max_stores
        self._new_id = new_id

    async def create(self, user_id: str, request: CreateVectorStoreRequest) -> str:
        """Create a vector store without files; return its id.

        Raises:
            GatewayError: storage_quota_exceeded, the user has too many.
        """
        store_id, now_ms = self._new_id(STORE_PREFIX), self._clock.now_ms()
        days = request.expires_after_days or None
        values = {
            "id": store_id,
            "user_id": user_id,
            "name": request.name,
            "description": request.description,
            "metadata": request.metadata,
            "expires_after_days": days,
            "created_at_ms": now_ms,
            "last_active_at_ms": now_ms,
            "expires_at_ms": expiry_ms(days, now_ms),
            "next_chunk": 0,
            "is_deleted": False,
        }

        async def transact(connection: AsyncConnection) -> None:
            # Of two calls, the second counts the vector store of the first.
            await lock_owner(connection, user_id)
            counted = select(func.count()).select_from(vector_stores).where(_owned(user_id))
            if (await connection.scalar(counted) or 0) >= self._max_stores:
                raise quota_exceeded(
                    f"you have the maximum of {self._max_stores:,} vector stores; delete some",
                    _LIMIT,
                )
            await connection.execute(insert(vector_stores), values)

        await write(self._engine, transact)
        return store_id

    async def find(
        self, user_id: str, store_ids: Sequence[str], param: str = "ids"
    ) -> list[VectorStore]:
        """Return vector stores, in the order of their ids.

        Raises:
            GatewayError: not_found, one of them does not exist; about the field `param`.
        """
        query = select(vector_stores).where(_owned(user_id), vector_stores.c.id.in_(store_ids))
        async with reading_once(self._engine) as connection:
            rows = (await connection.execute(query)).all()
        by_id = {store.id: store for store in await self._with_totals(rows)}
        if not by_id.keys() >= set(store_ids):
            raise store_not_found(param)
        return [by_id[store_id] for store_id in store_ids]

    async def page(self, user_id: str, page: PageRequest) -> tuple[list[VectorStore], bool]:
        """Return a page of vector stores, and whether there are more.

        Raises:
            GatewayError: invalid, a cursor is not the id of one of the user's vector stores.
        """

        def at(cursor: str) -> ColumnElement[bool]:
            return and_(_owned(user_id), vector_stores.c.id == cursor)

        query = select(vector_stores).where(_owned(user_id))
        rows, has_more = await page_of(self._engine, query, vector_stores.c.id, page, at)
        return await self._with_totals(rows), has_more

    async def change(self, user_id: str, request: UpdateVectorStoreRequest) -> None:
        """Change a vector store.

        Raises:
            GatewayError: not_found; invalid, it has expired.
        """
        now_ms = self._clock.now_ms()
        values: dict[str, Any] = {}
        if request.HasField("name"):
            values["name"] = request.name
        if request.HasField("metadata"):
            values["metadata"] = request.metadata
        if request.HasField("expires_after_days"):
            values["expires_after_days"] = request.expires_after_days or None

        async def transact(connection: AsyncConnection) -> None:
            row = await lock_store(connection, user_id, request.id, "id")
            days = values.get("expires_after_days", row.expires_after_days)
            if not has_expired(row, now_ms):
                values["expires_at_ms"] = expiry_ms(days, now_ms)
                values["last_active_at_ms"] = now_ms
            changed = update(vector_stores).where(vector_stores.c.id == row.id).values(values)
            await connection.execute(changed)

        await write(self._engine, transact)

    async def touch(self, user_id: str, stores: Sequence[VectorStore]) -> None:
        """Record that vector stores are used, unless that has been recorded within a minute."""
        now_ms = self._clock.now_ms()
        idle = [one for one in stores if now_ms - one.last_active_at_ms >= _ACTIVITY_MS]
        if not idle:
            return
        await write(self._engine, partial(self._touch, user_id=user_id, stores=idle, now_ms=now_ms))

    async def _touch(
        self,
        connection: AsyncConnection,
        user_id: str,
        stores: Sequence[VectorStore],
        now_ms: int,
    ) -> None:
        for store in sorted(stores, key=lambda one: one.id):
            expires_at_ms = expiry_ms(store.expires_after_days or None, now_ms)
            change = (
                update(vector_stores)
                .where(
                    _owned(user_id),
                    vector_stores.c.id == store.id,
                    or_(vector_stores.c.expires_at_ms == 0, vector_stores.c.expires_at_ms > now_ms),
                )
                .values(last_active_at_ms=now_ms, expires_at_ms=expires_at_ms)
            )
            await connection.execute(change)

    async def delete(self, user_id: str, store_id: str) -> None:
        """Delete a vector store; a job removes its index.

        Raises:
            GatewayError: not_found.
        """

        async def transact(connection: AsyncConnection) -> None:
            await lock_store(connection, user_id, store_id, "id")
            await self._empty(connection, user_id, store_id)
            await connection.execute(
                delete(vector_store_batches).where(vector_store_batches.c.store_id == store_id)
            )
            await connection.execute(
                update(vector_stores).where(vector_stores.c.id == store_id).values(is_deleted=True)
            )

        await write(self._engine, transact)

    async def empty_expired(self) -> int:
        """Remove the files of some vector stores that have expired; return how many there were."""
        now_ms, stores = self._clock.now_ms(), vector_stores.c
        which = (
            select(stores.id, stores.user_id)
            .where(stores.expires_at_ms.between(1, now_ms), stores.next_chunk >= 0)
            .where(~stores.is_deleted)
            .order_by(stores.id)
            .limit(_EXPIRED_AT_ONCE)
        )

        async def transact(connection: AsyncConnection) -> int:
            rows = (await connection.execute(which.with_for_update())).all()
            for row in rows:
                await self._empty(connection, row.user_id, row.id)
            return len(rows)

        return await write(self._engine, transact)

    async def _empty(self, connection: AsyncConnection, user_id: str, store_id: str) -> None:
        """Remove the files of a vector store, and put the job that removes their text."""
        await connection.execute(
            delete(vector_store_files).where(vector_store_files.c.store_id == store_id)
        )
        await connection.execute(
            update(vector_stores).where(vector_stores.c.id == store_id).values(next_chunk=-1)
        )
        await self._queue.put(connection, JobKind.UNINDEX, user_id, None, ALL_CHUNKS, text=store_id)

    async def remove_part(self, user_id: str, store_id: str, most: int) -> int:
        """Remove up to `most` rows of the index of a vector store without files, or its own row.

        Return how many there were; its own row is only removed if it is deleted.
        """

        async def transact(connection: AsyncConnection) -> int:
            if removed := await index.remove_part(connection, store_id, most):
                return removed
            gone = delete(vector_stores).where(
                vector_stores.c.id == store_id,
                vector_stores.c.user_id == user_id,
                vector_stores.c.is_deleted,
            )
            await connection.execute(gone)
            return 0

        return await write(self._engine, transact)

    async def _with_totals(self, rows: Sequence[Row[Any]]) -> list[VectorStore]:
        column = vector_store_files.c.store_id
        totals = await totals_by(self._engine, column, [row.id for row in rows])
        now_ms = self._clock.now_ms()
        return [store_of(row, totals[row.id], now_ms) for row in rows]


async def totals_by(
    engine: AsyncEngine, column: ColumnElement[str], values: Sequence[str]
) -> Mapping[str, Totals]:
    """Return the sums of files by the values of a column."""
    states: dict[str, _States] = {value: {} for value in values}
    if not states:
        return {}
    files = vector_store_files.c
    query = (
        select(column, files.state, func.count(), func.sum(files.usage_bytes))
        .where(column.in_(values))
        .group_by(column, files.state)
    )
    async with reading_once(engine) as connection:
        for value, state, count, size in await connection.execute(query):
            states[value][state] = count, int(size)
    return {value: totals_of(counted) for value, counted in states.items()}


async def lock_store(
    connection: AsyncConnection, user_id: str, store_id: str, param: str
) -> Row[Any]:
    """Lock a vector store until the transaction ends; return its row.

    Raises:
        GatewayError: not_found, about the field `param`.
    """
    query = select(vector_stores).where(_owned(user_id), vector_stores.c.id == store_id)
    row = (await connection.execute(query.with_for_update(key_share=True))).one_or_none()
    if row is None:
        raise store_not_found(param)
    return row


async def page_of(
    engine: AsyncEngine,
    query: Any,
    column: ColumnElement[str],
    page: PageRequest,
    at: Callable[[str], ColumnElement[bool]],
) -> tuple[list[Row[Any]], bool]:
    """Return the rows of a page in the order of a column, and whether there are more.

    Args:
        engine: the database.
        query: selects the rows of all pages.
        column: the column that sorts them, of the table that is selected.
        page: the page.
        at: returns the condition for the row of a cursor.

    Raises:
        GatewayError: invalid, a cursor does not exist.
    """
    is_ascending = page.is_ascending
    cursor, field = (page.after_id, "after_id") if page.after_id else (page.before_id, "before_id")
    if "\0" in cursor:  # which PostgreSQL refuses
        raise invalid(field, f"{field}: must be the id of an element of the list")
    if cursor:
        async with reading_once(engine) as connection:
            position = await connection.scalar(select(column).where(at(cursor)))
        if position is None:
            raise invalid(field, f"{field}: must be the id of an element of the list")
        if field == "before_id":
            is_ascending = not is_ascending
        query = query.where(column > position if is_ascending else column < position)
    order = column.asc() if is_ascending else column.desc()
    async with reading_once(engine) as connection:
        rows = (await connection.execute(query.order_by(order).limit(page.page_size + 1))).all()
    shown = list(rows[: page.page_size])
    if is_ascending is not page.is_ascending:
        shown.reverse()
    return shown, len(rows) > page.page_size


def _owned(user_id: str) -> ColumnElement[bool]:
    return and_(vector_stores.c.user_id == user_id, ~vector_stores.c.is_deleted)
