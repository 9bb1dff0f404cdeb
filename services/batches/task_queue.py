"""The queue of tasks that all workers of a database share.

A task is claimed by a lease, and completed in a transaction that also writes what has come of it,
and that fails if another worker holds the task by then.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    Row,
    Table,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.batches.v1.batches_pb2 import BatchOutcome
from gateway.conversation.v1.conversation_pb2 import Dialect
from services.batches.records import RequestResult, TaskKind, TaskLostError
from services.batches.repository import delete_rows
from services.batches.result_rows import COUNTS, has_result, result_rows, sums
from services.batches.tables import batch_requests, batch_results, batch_tasks, batches
from services.batches.task_rows import begin_batch, set_finalizing
from services.common import ids
from services.common.clock import Clock
from services.common.process.registry import ProcessRegistry
from services.common.storage.database import execute_many, reading_once, write
from services.common.storage.leased_rows import LeasedRows, holder_prefix, is_held_by_process

_HOLDER = "batch"
# Bodies of more bytes are read when their requests are run.
SMALL = 16 << 10
_FREE = {"holder": "", "ends_at_ms": 0}
_INSERT_RESULT = insert(batch_results)
_INSERT_REQUEST = insert(batch_requests)


@dataclass(frozen=True, slots=True)
class ClaimedRequest:
    """A request of a claimed task.

    Attributes:
        number: its number.
        custom_id: the id that the caller gave it.
        size: bytes of its body.
        body: its body; None for a large one, which is read when the request is run.
    """

    number: int
    custom_id: str
    size: int
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Task:
    """A claimed task.

    Attributes:
        id: its id.
        kind: what it does.
        batch_id: its batch.
        user_id: the user of the batch.
        key_id: the key that the batch was created with.
        dialect: the dialect of its requests.
        endpoint: the endpoint of its requests.
        headers: headers that are sent with its requests.
        input_file_id: the input file of the batch, or "".
        output_file_id: the file of results that has been written, or "".
        error_file_id: the file of errors that has been written, or "".
        output_ttl_s: lifetime of these files; None for the usual one.
        created_at_ms: when the batch was created.
        expires_at_ms: when its time is over.
        is_cancelled: whether it has been cancelled.
        has_ended: whether it has ended, and only its rows are to be deleted.
        has_unbegun: whether requests have results that say so.
        total: the number of its requests.
        first: the number of the first request of this task.
        size: how many there may be from that on.
        provider_batch_id: the provider batch of its requests, or "".
        requests: those that have no result yet, of a task that runs them.
    """

    id: str
    kind: TaskKind
    batch_id: str
    user_id: str
    key_id: str
    dialect: Dialect.ValueType
    endpoint: str
    headers: Mapping[str, str]
    input_file_id: str
    output_file_id: str
    error_file_id: str
    output_ttl_s: int | None
    created_at_ms: int
    expires_at_ms: int
    is_cancelled: bool
    has_ended: bool
    has_unbegun: bool
    total: int
    first: int
    size: int
    provider_batch_id: str
    requests: Sequence[ClaimedRequest] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class QueueState:
    """The number of tasks that nobody holds, and when the oldest batch of them was created."""

    free: int
    oldest_ms: int | None


class TaskQueue:
    """The queue; every method raises `unavailable` when the database does not answer.

    Args:
        engine: the database.
        clock: the clock.
        lease_s: seconds that a task is held without renewing it.
        processes: the processes of this machine, if their deaths can be detected.
        new_id: makes ids.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        lease_s: float,
        processes: ProcessRegistry | None = None,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self._rows = LeasedRows(batch_tasks, clock, lease_s)
        self._holder = new_id(holder_prefix(_HOLDER, processes.name if processes else ""))
        self.lease_s = lease_s
        if processes:
            processes.on_death.append(self.release_of_process)

    async def free(self, groups: Sequence[Collection[TaskKind]]) -> Sequence[bool]:
        """Return for each group of kinds whether there is a task that can be claimed."""
        claimable, kind = self._is_claimable(), batch_tasks.c.kind
        query = select(*[exists().where(claimable, kind.in_(kinds)) for kinds in groups])
        async with reading_once(self._engine) as connection:
            return tuple((await connection.execute(query)).one())

    async def state(self) -> QueueState:
        """Return the state of the queue."""
        query = (
            select(func.count(), func.min(batches.c.created_at_ms))
            .select_from(batch_tasks.join(batches, batches.c.id == batch_tasks.c.batch_id))
            # Those that wait for providers have nothing to do.
            .where(self._rows.has_expired(), batch_tasks.c.kind != TaskKind.COLLECT)
        )
        async with reading_once(self._engine) as connection:
            return QueueState(*(await connection.execute(query)).one())

    async def claim(
        self, kinds: Collection[TaskKind], except_users: Collection[str] = ()
    ) -> Task | None:
        """Claim the first free task of some kinds; None without one.

        Tasks of the users in `except_users` are left to others.
        """
        which = [self._is_claimable(), batch_tasks.c.kind.in_(kinds)]
        if except_users:
            which.append(batch_tasks.c.user_id.not_in(except_users))
        first = (
            select(batch_tasks.c.id)
            .where(*which)
            .order_by(batch_tasks.c.id)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        hold = (
            update(batch_tasks)
            .where(batch_tasks.c.id.in_(first))
            .values(holder=self._holder, ends_at_ms=self._rows.ends_at_ms())
            .returning(batch_tasks)
        )

        async def transact(connection: AsyncConnection) -> Task | None:
            claimed = (await connection.execute(hold)).one_or_none()
            if claimed is None:
                return None
            batch = (
                await connection.execute(select(batches).where(batches.c.id == claimed.batch_id))
            ).one()
            runs = claimed.kind == TaskKind.RUN
            requests = await _requests(connection, claimed) if runs else ()
            return Task(
                id=claimed.id,
                kind=TaskKind(claimed.kind),
                batch_id=batch.id,
                user_id=batch.user_id,
                key_id=batch.key_id,
                dialect=batch.dialect,
                endpoint=batch.endpoint,
                headers=orjson.loads(batch.headers),
                input_file_id=batch.input_file_id,
                output_file_id=batch.output_file_id,
                error_file_id=batch.error_file_id,
                output_ttl_s=batch.output_ttl_s,
                created_at_ms=batch.created_at_ms,
                expires_at_ms=batch.expires_at_ms,
                is_cancelled=batch.cancelling_at_ms > 0,
                has_ended=batch.ended_at_ms > 0,
                has_unbegun=batch.cancelled + batch.expired > 0,
                total=batch.total,
                first=claimed.first,
                size=claimed.size,
                provider_batch_id=claimed.provider_batch_id,
                requests=requests,
            )

        return await write(self._engine, transact, is_lasting=False)

    async def body(self, task: Task, number: int) -> bytes:
        """Return the body of a request of a task.

        Raises:
            TaskLostError: the batch has been deleted.
        """
        query = select(batch_requests.c.body).where(
            batch_requests.c.batch_id == task.batch_id, batch_requests.c.number == number
        )
        async with reading_once(self._engine) as connection:
            body: bytes | None = (await connection.execute(query)).scalar_one_or_none()
        if body is None:
            raise TaskLostError
        return body

    async def renew(self, task_ids: Collection[str]) -> Collection[str]:
        """Renew the leases of tasks; return the ids of those that this process still holds."""
        which = and_(batch_tasks.c.id.in_(task_ids), batch_tasks.c.holder == self._holder)
        rows = await write(
            self._engine, lambda connection: self._rows.hold(connection, which), is_lasting=False
        )
        return {row.id for row in rows}

    async def cancelled(self, batch_ids: Collection[str]) -> Collection[str]:
        """Return which of some batches have been cancelled."""
        query = select(batches.c.id).where(
            batches.c.id.in_(batch_ids), batches.c.cancelling_at_ms > 0
        )
        async with reading_once(self._engine) as connection:
            return set((await connection.scalars(query)).all())

    async def release(self, task: Task, delay_s: float = 0) -> None:
        """Release a task, so that any worker can claim it after `delay_s`."""
        free = (
            update(batch_tasks)
            .where(self._is_held(task))
            .values(not_before_ms=self._clock.now_ms() + int(delay_s * 1000), **_FREE)
        )
        await write(self._engine, lambda connection: connection.execute(free))

    async def release_of_process(self, process: str) -> None:
        """Release all tasks of a process that has died."""
        which = is_held_by_process(batch_tasks.c.holder, _HOLDER, process)
        free = update(batch_tasks).where(which).values(**_FREE)
        await write(self._engine, lambda connection: connection.execute(free))

    async def store(self, task: Task, results: Sequence[RequestResult], *, is_done: bool) -> None:
        """Store results of a task and, if it is done, remove it.

        Raises:
            TaskLostError: another worker holds it, and nothing is stored.
        """

        async def transact(connection: AsyncConnection) -> None:
            await self.check_held(connection, task, is_done=is_done)
            if results:
                await execute_many(connection, _INSERT_RESULT, result_rows(task.batch_id, results))
            # Even without results: it locks the row of the batch.
            await connection.execute(
                update(batches).where(batches.c.id == task.batch_id).values(sums(results))
            )
            if is_done:
                await set_finalizing(
                    connection, task.batch_id, task.user_id, self._clock.now_ms(), self._new_id
                )

        await write(self._engine, transact)

    async def begin(self, task: Task, total: int) -> None:
        """Remove the task that has stored the requests of a batch, and begin to run them.

        Raises:
            TaskLostError: another worker holds it, and nothing is changed.
        """

        async def transact(connection: AsyncConnection) -> None:
            await self.check_held(connection, task, is_done=True)
            now_ms = self._clock.now_ms()
            await begin_batch(connection, task.batch_id, task.user_id, total, now_ms, self._new_id)

        await write(self._engine, transact)

    async def store_request_rows(self, task: Task, rows: Sequence[Mapping[str, Any]]) -> None:
        """Store requests of the batch of a task.

        Raises:
            TaskLostError: another worker holds it, and nothing is stored.
        """

        async def transact(connection: AsyncConnection) -> None:
            await self.check_held(connection, task, is_done=False)
            await execute_many(connection, _INSERT_REQUEST, rows)

        await write(self._engine, transact)

    async def delete_rows(self, task: Task, table: Table) -> None:
        """Delete the requests or results of the batch of a task, some at a time.

        Raises:
            TaskLostError: another worker holds it.
        """

        async def transact(connection: AsyncConnection) -> int:
            await self.check_held(connection, task, is_done=False)
            return await delete_rows(connection, table, task.batch_id)

        while await write(self._engine, transact):
            pass

    async def complete_results(self, task: Task) -> int:
        """Store results for the requests that were not begun: of cancellation, or of expiry.

        Return their number.

        Raises:
            TaskLostError: another worker holds the task, which finalizes the batch.
        """
        outcome = (
            BatchOutcome.BATCH_OUTCOME_CANCELLED
            if task.is_cancelled
            else BatchOutcome.BATCH_OUTCOME_EXPIRED
        )
        columns = batch_results.c
        missing = select(
            batch_requests.c.batch_id,
            batch_requests.c.number,
            batch_requests.c.custom_id,
            literal(int(outcome), columns.outcome.type),
            literal(0, columns.status.type),
            literal("", columns.request_id.type),
            literal(b"", columns.body.type),
        ).where(batch_requests.c.batch_id == task.batch_id, ~has_result())
        names = ["batch_id", "number", "custom_id", "outcome", "status", "request_id", "body"]

        async def transact(connection: AsyncConnection) -> int:
            await self.check_held(connection, task, is_done=False)
            inserted = await connection.execute(insert(batch_results).from_select(names, missing))
            if inserted.rowcount:
                column = batches.c[COUNTS[outcome]]
                await connection.execute(
                    update(batches)
                    .where(batches.c.id == task.batch_id)
                    .values({column: column + inserted.rowcount})
                )
            return inserted.rowcount

        return await write(self._engine, transact)

    async def set_batch(
        self, task: Task, values: Mapping[str, Any], *, is_done: bool = False
    ) -> None:
        """Set columns of the batch of a task and, if it is done, remove the task.

        Raises:
            TaskLostError: another worker holds it, and nothing is changed.
        """

        async def transact(connection: AsyncConnection) -> None:
            await self.check_held(connection, task, is_done=is_done)
            await connection.execute(
                update(batches).where(batches.c.id == task.batch_id).values(values)
            )

        await write(self._engine, transact)

    async def remove(self, task: Task) -> None:
        """Remove a task that is done.

        Raises:
            TaskLostError: another worker holds it.
        """

        async def transact(connection: AsyncConnection) -> None:
            await self.check_held(connection, task, is_done=True)

        await write(self._engine, transact)

    async def check_held(self, connection: AsyncConnection, task: Task, *, is_done: bool) -> None:
        """Lock a task and, if it is done, remove it.

        Raises:
            TaskLostError: another worker holds it.
        """
        is_held = self._is_held(task)
        if is_done:
            held = await connection.execute(delete(batch_tasks).where(is_held))
        else:
            renewed = {"ends_at_ms": self._rows.ends_at_ms()}
            held = await connection.execute(update(batch_tasks).where(is_held).values(**renewed))
        if not held.rowcount:
            raise TaskLostError

    def _is_held(self, task: Task) -> ColumnElement[bool]:
        return and_(batch_tasks.c.id == task.id, batch_tasks.c.holder == self._holder)

    def _is_claimable(self) -> ColumnElement[bool]:
        return and_(self._rows.has_expired(), batch_tasks.c.not_before_ms <= self._clock.now_ms())


async def _requests(
    connection: AsyncConnection, claimed: Row[*tuple[Any, ...]]
) -> Sequence[ClaimedRequest]:
    """Return the requests of a task that have no result yet."""
    size = func.length(batch_requests.c.body)
    small_body = case((size <= SMALL, batch_requests.c.body))
    query = (
        select(batch_requests.c.number, batch_requests.c.custom_id, size, small_body)
        .where(
            batch_requests.c.batch_id == claimed.batch_id,
            batch_requests.c.number >= claimed.first,
            batch_requests.c.number < claimed.first + claimed.size,
            batch_requests.c.provider_batch_id == claimed.provider_batch_id,
            ~has_result(),
        )
        .order_by(batch_requests.c.number)
    )
    return [ClaimedRequest(*row) for row in (await connection.execute(query)).all()]
