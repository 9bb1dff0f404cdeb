"""The batches of all users in the database: creation, reading, cancellation and deletion.

Tasks are claimed and completed by `task_queue`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Row, Table, and_, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.batches.v1.batches_pb2 import (
    Batch,
    BatchItem,
    BatchOutcome,
    BatchResult,
    CreateBatchRequest,
    ListBatchesRequest,
)
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, Dialect
from services.batches.records import (
    BatchLimits,
    State,
    TaskKind,
    batch_of,
    not_ended,
    not_found,
    pack_headers,
    too_many_open,
)
from services.batches.tables import (
    batch_requests,
    batch_results,
    batch_tasks,
    batches,
    provider_batches,
)
from services.batches.task_rows import OWN_WORKERS, begin_batch, insert_task, set_finalizing
from services.common import ids
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.grpc.authentication import Caller
from services.common.storage.database import reading_once, write
from services.common.storage.row_inserts import insert_rows

_PREFIX = "batch_"
_ANTHROPIC_PREFIX = "msgbatch_"
# Requests that are inserted in a transaction, and their bytes; results that are read at once.
_AT_ONCE = 2_000
_RESULTS_AT_ONCE = 200
# Rows that are deleted in a transaction: one of SQLite blocks all others that write.
_DELETED_AT_ONCE = {"sqlite": 500, "postgresql": 2_500}
# Bytes of results that are read at once, if more than one is read.
_BYTES_AT_ONCE = 4 << 20
# Time after which a batch whose creation has not been completed is deleted.
_CREATED_WITHIN_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch to create.

    Attributes:
        owner: the caller.
        request: what it is created from.
    """

    owner: Caller
    request: CreateBatchRequest


class BatchRepository:
    """The batches; every method raises `unavailable` when the database does not answer.

    Args:
        engine: the database.
        clock: the clock.
        limits: the bounds.
        uses_providers: returns whether requests may be sent to batch services of providers.
        new_id: makes the ids of batches and tasks.

    Attributes:
        limits: the bounds.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        limits: BatchLimits,
        uses_providers: Callable[[], bool] = lambda: False,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._uses_providers = uses_providers
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self.limits = limits

    async def create(self, new: NewBatch) -> Batch:
        """Create a batch, and the first of its tasks.

        Raises:
            GatewayError: rate_limited, the caller has too many batches that have not ended.
        """
        row = self._new_row(new)
        batch_id, owner, items = str(row["id"]), new.owner, new.request.items
        await write(self._engine, lambda connection: self._insert(connection, owner, row))
        if items:
            await insert_requests(self._engine, batch_id, 0, items)

            async def begin(connection: AsyncConnection) -> None:
                now_ms = self._clock.now_ms()
                await begin_batch(
                    connection, batch_id, owner.user_id, len(items), now_ms, self._new_id
                )

            await write(self._engine, begin)
        return await self.find(owner.user_id, batch_id, new.request.dialect)

    async def find(self, user_id: str, batch_id: str, dialect: Dialect.ValueType) -> Batch:
        """Return a batch.

        Raises:
            GatewayError: not_found.
        """
        return batch_of(await self._row(user_id, batch_id, dialect))

    async def page(self, user_id: str, request: ListBatchesRequest) -> tuple[list[Batch], bool]:
        """Return a page of batches, the newest first, and whether there are more.

        Raises:
            GatewayError: invalid, a cursor is not the id of one of the user's batches.
        """
        query = select(batches).where(_is_shown(user_id, request.dialect))
        order = batches.c.id.desc()
        for field, cursor in (("after_id", request.after_id), ("before_id", request.before_id)):
            if not cursor:
                continue
            exists = select(batches.c.id).where(
                _is_shown(user_id, request.dialect), batches.c.id == cursor
            )
            async with reading_once(self._engine) as connection:
                if (await connection.execute(exists)).one_or_none() is None:
                    raise invalid(field, f"{field}: must be the id of one of your batches")
            if field == "after_id":
                query = query.where(batches.c.id < cursor)
            else:
                query, order = query.where(batches.c.id > cursor), batches.c.id.asc()
        async with reading_once(self._engine) as connection:
            statement = query.order_by(order).limit(request.page_size + 1)
            rows = (await connection.execute(statement)).all()
        page = [batch_of(row) for row in rows[: request.page_size]]
        if request.before_id:
            page.reverse()
        return page, len(rows) > request.page_size

    async def cancel(self, user_id: str, batch_id: str, dialect: Dialect.ValueType) -> Batch:
        """Cancel a batch that has not ended: delete its free tasks, and return it.

        Raises:
            GatewayError: not_found.
        """
        await self._row(user_id, batch_id, dialect)
        now_ms = self._clock.now_ms()
        mark = (
            update(batches)
            .where(
                batches.c.id == batch_id,
                batches.c.state.in_((State.VALIDATING, State.IN_PROGRESS)),
                batches.c.cancelling_at_ms == 0,
            )
            .values(cancelling_at_ms=now_ms)
        )
        free = delete(batch_tasks).where(
            batch_tasks.c.id.in_(
                select(batch_tasks.c.id)
                .where(
                    batch_tasks.c.batch_id == batch_id,
                    batch_tasks.c.kind.in_((TaskKind.RUN, TaskKind.VALIDATE)),
                    batch_tasks.c.holder == "",
                )
                .order_by(batch_tasks.c.id)
                .with_for_update(skip_locked=True)
            )
        )

        # They end what providers have begun.
        at_once = (
            update(batch_tasks)
            .where(
                batch_tasks.c.batch_id == batch_id,
                batch_tasks.c.kind.in_((TaskKind.SUBMIT, TaskKind.COLLECT)),
            )
            .values(not_before_ms=0)
        )

        async def transact(connection: AsyncConnection) -> None:
            # The tasks first, as everywhere.
            await connection.execute(free)
            await connection.execute(at_once)
            if (await connection.execute(mark)).rowcount:
                await set_finalizing(connection, batch_id, user_id, now_ms, self._new_id)

        await write(self._engine, transact)
        return await self.find(user_id, batch_id, dialect)

    async def delete(self, user_id: str, batch_id: str, dialect: Dialect.ValueType) -> None:
        """Delete a batch that has ended.

        Raises:
            GatewayError: not_found; conflict, it has not ended.
        """
        if not (await self._row(user_id, batch_id, dialect)).ended_at_ms:
            raise not_ended("id: the batch has not ended; cancel it first")
        while await delete_some(self._engine, batches.c.id == batch_id):
            pass

    async def results(
        self, user_id: str, batch_id: str, dialect: Dialect.ValueType
    ) -> AsyncIterator[Sequence[BatchResult]]:
        """Yield the results of a batch that has ended, in order.

        Raises:
            GatewayError: not_found; conflict, it has not ended.
        """
        if not (await self._row(user_id, batch_id, dialect)).ended_at_ms:
            raise not_ended("id: the batch has not ended; its results are available when it has")
        async for page in self.stored_results(batch_id):
            yield page

    async def stored_results(
        self, batch_id: str, *, succeeded: bool | None = None
    ) -> AsyncIterator[Sequence[BatchResult]]:
        """Yield the stored results of a batch, in order, by default all of them."""
        last = -1
        which = batch_results.c.batch_id == batch_id
        if succeeded is not None:
            is_success = batch_results.c.outcome == BatchOutcome.BATCH_OUTCOME_SUCCEEDED
            which = and_(which, is_success if succeeded else ~is_success)
        sizes = select(batch_results.c.number, func.length(batch_results.c.body)).where(which)
        sizes = sizes.order_by(batch_results.c.number).limit(_RESULTS_AT_ONCE)
        query = select(batch_results).where(which).order_by(batch_results.c.number)
        while True:
            async with reading_once(self._engine) as connection:
                page = (await connection.execute(sizes.where(batch_results.c.number > last))).all()
            if not page:
                return
            first, last = last, last_within(_BYTES_AT_ONCE, [(row[0], row[1]) for row in page])
            between = (batch_results.c.number > first, batch_results.c.number <= last)
            async with reading_once(self._engine) as connection:
                rows = (await connection.execute(query.where(*between))).all()
            yield [
                BatchResult(
                    custom_id=row.custom_id,
                    outcome=row.outcome,
                    status=row.status,
                    request_id=row.request_id,
                    body=row.body,
                )
                for row in rows
            ]

    async def delete_expired(self) -> int:
        """Delete some rows of a batch whose time is over; return how many there were."""
        now_ms = self._clock.now_ms()
        is_over = and_(batches.c.deleted_at_ms > 0, batches.c.deleted_at_ms <= now_ms)
        return await delete_some(self._engine, is_over)

    def _new_row(self, new: NewBatch) -> dict[str, object]:
        request, now_ms = new.request, self._clock.now_ms()
        prefix = _ANTHROPIC_PREFIX if request.dialect == DIALECT_ANTHROPIC else _PREFIX
        ttl_s = request.output_expires_after_s
        return {
            "id": self._new_id(prefix),
            "user_id": new.owner.user_id,
            "key_id": new.owner.key_id,
            "dialect": request.dialect,
            "endpoint": request.endpoint,
            "state": State.CREATING if request.items else State.VALIDATING,
            "input_file_id": request.input_file_id,
            "output_file_id": "",
            "error_file_id": "",
            "own_workers": request.own_workers_only or not self._uses_providers(),
            "output_ttl_s": ttl_s if request.HasField("output_expires_after_s") else None,
            "metadata": request.metadata,
            "headers": pack_headers(request.headers),
            "errors": b"[]",
            **dict.fromkeys(("total", "succeeded", "errored", "cancelled", "expired"), 0),
            **dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens"), 0),
            "created_at_ms": now_ms,
            "expires_at_ms": now_ms + int(self.limits.window_s * 1000),
            **dict.fromkeys(("started_at_ms", "finalizing_at_ms", "cancelling_at_ms"), 0),
            "ended_at_ms": 0,
            "deleted_at_ms": now_ms + _CREATED_WITHIN_MS if request.items else 0,
        }

    async def _insert(
        self, connection: AsyncConnection, owner: Caller, row: dict[str, object]
    ) -> None:
        """Insert a batch, and the task to validate it unless its requests are inserted next.

        Raises:
            GatewayError: rate_limited.
        """
        is_open = (batches.c.user_id == owner.user_id, batches.c.ended_at_ms == 0)
        count = await connection.scalar(select(func.count()).select_from(batches).where(*is_open))
        if (count or 0) >= self.limits.max_open:
            raise too_many_open(self.limits.max_open)
        await connection.execute(insert(batches), row)
        if row["state"] == State.VALIDATING:
            await insert_task(
                connection, str(row["id"]), owner.user_id, TaskKind.VALIDATE, self._new_id
            )

    async def _row(
        self, user_id: str, batch_id: str, dialect: Dialect.ValueType
    ) -> Row[*tuple[object, ...]]:
        query = select(batches).where(_is_shown(user_id, dialect), batches.c.id == batch_id)
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise not_found()
        return row


async def insert_requests(
    engine: AsyncEngine, batch_id: str, first: int, items: Sequence[BatchItem]
) -> None:
    """Insert requests of a batch, the first with the number `first`.

    Raises:
        GatewayError: not_found, the batch has been deleted.
    """
    for start in range(0, len(items), _AT_ONCE):
        rows = [
            {
                "batch_id": batch_id,
                "number": first + start + place,
                "custom_id": item.custom_id,
                "body": item.body,
                "provider_batch_id": OWN_WORKERS,
            }
            for place, item in enumerate(items[start : start + _AT_ONCE])
        ]

        async def transact(
            connection: AsyncConnection, rows: Sequence[Mapping[str, object]] = rows
        ) -> None:
            # Its owner may have been erased meanwhile.
            if not await _lock(connection, batch_id):
                raise not_found()
            await insert_rows(connection, batch_requests, rows)

        await write(engine, transact)


async def delete_some(
    engine: AsyncEngine,
    which: ColumnElement[bool],
    on_deleted: Callable[[AsyncConnection], Awaitable[None]] | None = None,
) -> int:
    """Delete some rows of a batch that `which` selects, or the batch itself.

    Its tasks are deleted first, so that workers can store no more results.

    Args:
        engine: the database.
        which: selects batches.
        on_deleted: called in the transaction that deletes a batch itself.

    Returns:
        The number of deleted rows; 0 if there is no such batch.
    """

    async def transact(connection: AsyncConnection) -> int:
        first = select(batches.c.id).where(which).limit(1)
        batch_id = await connection.scalar(first)
        if batch_id is None:
            return 0
        await connection.execute(delete(batch_tasks).where(batch_tasks.c.batch_id == batch_id))
        # No request is inserted from here on.
        await _lock(connection, batch_id)
        for table in (batch_requests, batch_results):
            if count := await delete_rows(connection, table, batch_id):
                return count
        at_providers = provider_batches.c.batch_id == batch_id
        await connection.execute(delete(provider_batches).where(at_providers))
        await connection.execute(delete(batches).where(batches.c.id == batch_id))
        if on_deleted is not None:
            await on_deleted(connection)
        return 1

    return await write(engine, transact)


async def _lock(connection: AsyncConnection, batch_id: str) -> bool:
    """Lock the row of a batch until the end of the transaction; return whether there is one."""
    row = select(batches.c.id).where(batches.c.id == batch_id).with_for_update()
    return await connection.scalar(row) is not None


async def delete_rows(connection: AsyncConnection, table: Table, batch_id: str) -> int:
    """Delete some requests or results of a batch; return how many there were."""
    numbers = (
        select(table.c.number)
        .where(table.c.batch_id == batch_id)
        .order_by(table.c.number)
        .limit(_DELETED_AT_ONCE[connection.dialect.name])
    )
    some = delete(table).where(table.c.batch_id == batch_id, table.c.number.in_(numbers))
    return (await connection.execute(some)).rowcount


def last_within(max_bytes: int, sizes: Sequence[tuple[int, int]]) -> int:
    """Return the number of the last of some results that have `max_bytes` together, or one."""
    last, total = sizes[0]
    for number, size in sizes[1:]:
        total += size
        if total > max_bytes:
            break
        last = number
    return last


def _is_shown(user_id: str, dialect: Dialect.ValueType) -> ColumnElement[bool]:
    return and_(
        batches.c.user_id == user_id,
        batches.c.dialect == dialect,
        batches.c.state != State.CREATING,
    )
