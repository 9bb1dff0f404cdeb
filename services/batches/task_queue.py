"""The queue of tasks that all workers of a database share.

A task is claimed by a lease, and completed in a transaction that also writes what has come of it,
and that fails if another worker holds the task by then.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
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
from services.batches.records import TaskKind, TaskLostError
from services.batches.repository import delete_rows
from services.batches.result_rows import COUNTS, has_result, result_rows, sums
from services.batches.tables import batch_requests, batch_results, batch_tasks, batches
from services.batches.task_rows import begin_batch, set_finalizing
from services.batches.tasks import ClaimedRequest, QueueState, Task, TaskFilter, TaskResults
from services.common import ids
from services.common.clock import Clock
from services.common.process.registry import ProcessRegistry
from services.common.storage.database import reading_once, write
from services.common.storage.leased_rows import LeasedRows, holder_prefix, is_held_by_process
from services.common.storage.row_inserts import insert_rows

_HOLDER = "batch"
# Bodies of more bytes are read when their requests are run.
SMALL = 16 << 10
_FREE = {"holder": "", "ends_at_ms": 0}


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

    async def free(self, filters: Sequence[TaskFilter]) -> Sequence[bool]:
        """Return for each filter whether there are such tasks that can be claimed."""
        query = select(*[exists().where(*self._is_free(each)) for each in filters])
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

    async def claim(self, chosen: TaskFilter) -> Sequence[Task]:
        """Claim the first free tasks that a filter lets through; none if there are none."""
        first = (
            select(batch_tasks.c.id)
            .where(*self._is_free(chosen))
            .order_by(batch_tasks.c.id)
            .limit(chosen.at_most)
            .with_for_update(skip_locked=True)
        )
        hold = (
            update(batch_tasks)
            .where(batch_tasks.c.id.in_(first))
            .values(
                holder=self._holder,
                ends_at_ms=self._rows.ends_at_ms(),
                claims=batch_tasks.c.claims + 1,
            )
            .returning(batch_tasks)
        )

        async def transact(connection: AsyncConnection) -> Sequence[Task]:
            claimed = (await connection.execute(hold)).all()
            if not claimed:
                return ()
            batch_ids = {row.batch_id for row in claimed}
            query = select(batches).where(batches.c.id.in_(batch_ids))
            batch_by_id = {row.id: row for row in (await connection.execute(query)).all()}
            requests = await _requests(
                connection, [row.id for row in claimed if row.kind == TaskKind.RUN]
            )
            return [
                _task(row, batch_by_id[row.batch_id], requests.get(row.id, ()))
                for row in sorted(claimed, key=lambda row: str(row.id))
            ]

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
        which = self._is_one_held(task_ids)
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
        """Release a task, so that any worker can claim it after `delay_s`.

        Its claim does not count.
        """
        free = (
            update(batch_tasks)
            .where(self._is_held(task))
            .values(
                not_before_ms=self._clock.now_ms() + int(delay_s * 1000),
                claims=task.claims - 1,
                begun_alone=task.begun_alone,
                **_FREE,
            )
        )
        await write(self._engine, lambda connection: connection.execute(free))

    async def mark_alone(self, task: Task, begun: int) -> None:
        """Store how often the first of a task's requests without a result has been run alone.

        Raises:
            TaskLostError: another worker holds the task.
        """
        mark = (
            update(batch_tasks)
            .where(self._is_held(task))
            .values(begun_alone=begun, ends_at_ms=self._rows.ends_at_ms())
        )
        marked = await write(
            self._engine, lambda connection: connection.execute(mark), is_lasting=False
        )
        if not marked.rowcount:
            raise TaskLostError

    async def release_of_process(self, process: str) -> None:
        """Release all tasks of a process that has died."""
        which = is_held_by_process(batch_tasks.c.holder, _HOLDER, process)
        free = update(batch_tasks).where(which).values(**_FREE)
        await write(self._engine, lambda connection: connection.execute(free))

    async def store(
        self, parts: Sequence[TaskResults], *, is_repeated: bool = False
    ) -> Collection[str]:
        """Store results of tasks together, and remove those that are done.

        Args:
            parts: the results, of different tasks.
            is_repeated: whether an earlier call for these tasks failed, so that it is not known
                whether its results are stored.

        Returns:
            The ids of the tasks that this process held. Nothing is stored of the others.
        """

        async def transact(connection: AsyncConnection) -> Collection[str]:
            held_ids = await self._hold(connection, parts)
            parts_by_batch = defaultdict(list)
            for part in parts:
                if part.task.id in held_ids:
                    new = await _not_stored(connection, part) if is_repeated else part
                    parts_by_batch[part.task.batch_id].append(new)
            rows = [
                row
                for batch_id, held in parts_by_batch.items()
                for part in held
                for row in result_rows(batch_id, part.results)
            ]
            if rows:
                await insert_rows(connection, batch_results, rows)
            # In one order everywhere, which prevents deadlocks.
            for batch_id, held in sorted(parts_by_batch.items()):
                results = [result for part in held for result in part.results]
                # Even without results: it locks the row of the batch.
                await connection.execute(
                    update(batches).where(batches.c.id == batch_id).values(sums(results))
                )
                # A task that is not done is left, and ends the batch later.
                if all(part.is_done for part in held):
                    user_id, now_ms = held[0].task.user_id, self._clock.now_ms()
                    await set_finalizing(connection, batch_id, user_id, now_ms, self._new_id)
            return held_ids

        return await write(self._engine, transact)

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
            await insert_rows(connection, batch_requests, rows)

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

    async def _hold(
        self, connection: AsyncConnection, parts: Sequence[TaskResults]
    ) -> Collection[str]:
        """Lock tasks, and remove those that are done; return the ids of those that are held."""
        which = self._is_one_held([part.task.id for part in parts])
        if all(part.is_done for part in parts):
            # In the order of `LeasedRows.hold`, which prevents deadlocks.
            ordered = select(batch_tasks.c.id).where(which).order_by(batch_tasks.c.id)
            done = delete(batch_tasks).where(batch_tasks.c.id.in_(ordered.with_for_update()))
            return set(await connection.scalars(done.returning(batch_tasks.c.id)))
        held_ids = {row.id for row in await self._rows.hold(connection, which, begun_alone=0)}
        done_ids = held_ids.intersection(part.task.id for part in parts if part.is_done)
        if done_ids:
            await connection.execute(delete(batch_tasks).where(batch_tasks.c.id.in_(done_ids)))
        return held_ids

    def _is_held(self, task: Task) -> ColumnElement[bool]:
        return and_(batch_tasks.c.id == task.id, batch_tasks.c.holder == self._holder)

    def _is_one_held(self, task_ids: Collection[str]) -> ColumnElement[bool]:
        return and_(batch_tasks.c.id.in_(task_ids), batch_tasks.c.holder == self._holder)

    def _is_free(self, chosen: TaskFilter) -> Sequence[ColumnElement[bool]]:
        conditions = [
            self._rows.has_expired(),
            batch_tasks.c.not_before_ms <= self._clock.now_ms(),
            batch_tasks.c.kind.in_(chosen.kinds),
        ]
        if chosen.except_users:
            conditions.append(batch_tasks.c.user_id.not_in(chosen.except_users))
        return conditions


async def _requests(
    connection: AsyncConnection, task_ids: Collection[str]
) -> Mapping[str, Sequence[ClaimedRequest]]:
    """Return the requests of tasks that have no result yet, by task."""
    by_task: dict[str, list[ClaimedRequest]] = defaultdict(list)
    if not task_ids:
        return by_task
    size = func.length(batch_requests.c.body)
    small_body = case((size <= SMALL, batch_requests.c.body))
    is_of_task = and_(
        batch_requests.c.batch_id == batch_tasks.c.batch_id,
        batch_requests.c.number >= batch_tasks.c.first,
        batch_requests.c.number < batch_tasks.c.first + batch_tasks.c.size,
        batch_requests.c.provider_batch_id == batch_tasks.c.provider_batch_id,
    )
    columns = (batch_requests.c.number, batch_requests.c.custom_id, size, small_body)
    query = (
        select(batch_tasks.c.id, *columns)
        .select_from(batch_tasks.join(batch_requests, is_of_task))
        .where(batch_tasks.c.id.in_(task_ids), ~has_result())
        .order_by(batch_tasks.c.id, batch_requests.c.number)
    )
    for task_id, *request in (await connection.execute(query)).all():
        by_task[task_id].append(ClaimedRequest(*request))
    return by_task


async def _not_stored(connection: AsyncConnection, part: TaskResults) -> TaskResults:
    """Return those results of a task that are not stored; only its holder could have done that."""
    numbers = [result.number for result in part.results]
    query = select(batch_results.c.number).where(
        batch_results.c.batch_id == part.task.batch_id, batch_results.c.number.in_(numbers)
    )
    stored = set((await connection.scalars(query)).all())
    return replace(part, results=[each for each in part.results if each.number not in stored])


def _task(
    claimed: Row[*tuple[Any, ...]],
    batch: Row[*tuple[Any, ...]],
    requests: Sequence[ClaimedRequest],
) -> Task:
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
        claims=claimed.claims,
        begun_alone=claimed.begun_alone,
        requests=requests,
    )
