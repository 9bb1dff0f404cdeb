"""Requests that are at the batch services of providers, in the database.

A request belongs to one provider batch at a time, or to none: then the gateway's own workers run
it. The row of a provider batch is written before the batch is created at the provider, so that it
can be looked for there after a worker has died in between.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.batches.repository import last_within
from services.batches.result_rows import has_result
from services.batches.tables import batch_requests, batches, provider_batches
from services.batches.task_queue import TaskQueue
from services.batches.task_rows import (
    OWN_WORKERS,
    insert_collecting,
    insert_runs,
    set_finalizing,
)
from services.batches.tasks import ClaimedRequest, Task
from services.common import ids
from services.common.clock import Clock
from services.common.storage.database import reading_once, write

_PREFIX = "pbatch_"
# Requests that are read at once, and their bytes.
_AT_ONCE = 200
_BYTES_AT_ONCE = 4 << 20
# Numbers in a statement.
_NUMBERS = 500


class ProviderBatch(NamedTuple):
    """A batch of requests at a provider.

    Attributes:
        id: its id in the database, which names it at the provider, too.
        provider: the name of the provider.
        model: the provider's name for the model.
        provider_id: the provider's id; "" as long as it is not known.
        created_at_ms: when its row was written.
    """

    id: str
    provider: str
    model: str
    provider_id: str
    created_at_ms: int


class ProviderQueue:
    """The provider batches; every method raises `unavailable` if the database does not answer.

    Methods that change rows raise TaskLostError, and change nothing, if another worker holds the
    task.

    Args:
        engine: the database.
        clock: the clock.
        queue: the tasks.
        new_id: makes ids.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        queue: TaskQueue,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._queue = queue
        self._new_id = new_id

    async def unassigned(self, task: Task) -> AsyncIterator[Sequence[ClaimedRequest]]:
        """Yield the requests of a task that have no result and belong to no provider batch."""
        last = task.first - 1
        is_left = and_(
            batch_requests.c.batch_id == task.batch_id,
            batch_requests.c.number < task.first + task.size,
            batch_requests.c.provider_batch_id == OWN_WORKERS,
            ~has_result(),
        )
        sizes = select(batch_requests.c.number, func.length(batch_requests.c.body)).where(is_left)
        sizes = sizes.order_by(batch_requests.c.number).limit(_AT_ONCE)
        while True:
            async with reading_once(self._engine) as connection:
                query = sizes.where(batch_requests.c.number > last)
                page = [(row[0], row[1]) for row in (await connection.execute(query)).all()]
            if not page:
                return
            last = last_within(_BYTES_AT_ONCE, page)
            yield await self.requests(task, [number for number, _ in page if number <= last])

    async def requests(self, task: Task, numbers: Sequence[int]) -> Sequence[ClaimedRequest]:
        """Return some requests of the batch of a task, with their bodies."""
        columns = batch_requests.c
        query = (
            select(columns.number, columns.custom_id, func.length(columns.body), columns.body)
            .where(columns.batch_id == task.batch_id, columns.number.in_(numbers))
            .order_by(columns.number)
        )
        async with reading_once(self._engine) as connection:
            return [ClaimedRequest(*row) for row in (await connection.execute(query)).all()]

    async def begun(self, task: Task) -> Sequence[ProviderBatch]:
        """Return the provider batches of a task whose creation was not completed."""
        which = and_(provider_batches.c.task_id == task.id, provider_batches.c.provider_id == "")
        return await self._found(which)

    async def find(self, batch_id: str) -> ProviderBatch | None:
        """Return the provider batch with an id, or None."""
        found = await self._found(provider_batches.c.id == batch_id)
        return found[0] if found else None

    async def assign(
        self, task: Task, provider: str, model: str, numbers: Sequence[int]
    ) -> ProviderBatch:
        """Insert a provider batch that is about to be created, and assign requests to it."""
        now_ms = self._clock.now_ms()
        batch = ProviderBatch(self._new_id(_PREFIX), provider, model, "", now_ms)

        async def transact(connection: AsyncConnection) -> None:
            await self._queue.check_held(connection, task, is_done=False)
            row = {"batch_id": task.batch_id, "task_id": task.id, **batch._asdict()}
            await connection.execute(insert(provider_batches), row)
            for start in range(0, len(numbers), _NUMBERS):
                some = numbers[start : start + _NUMBERS]
                await connection.execute(
                    update(batch_requests)
                    .where(
                        batch_requests.c.batch_id == task.batch_id,
                        batch_requests.c.number.in_(some),
                    )
                    .values(provider_batch_id=batch.id)
                )

        await write(self._engine, transact)
        return batch

    async def withdraw(self, task: Task, batch: ProviderBatch) -> None:
        """Delete a provider batch that was not created; its requests belong to none again."""

        async def transact(connection: AsyncConnection) -> None:
            await self._queue.check_held(connection, task, is_done=False)
            await connection.execute(
                update(batch_requests)
                .where(
                    batch_requests.c.batch_id == task.batch_id,
                    batch_requests.c.provider_batch_id == batch.id,
                )
                .values(provider_batch_id=OWN_WORKERS)
            )
            await connection.execute(
                delete(provider_batches).where(provider_batches.c.id == batch.id)
            )

        await write(self._engine, transact)

    async def created(self, task: Task, batch: ProviderBatch, provider_id: str) -> None:
        """Store the provider's id of a batch, and insert the task that waits for its end."""

        async def transact(connection: AsyncConnection) -> None:
            await self._queue.check_held(connection, task, is_done=False)
            await connection.execute(
                update(provider_batches)
                .where(provider_batches.c.id == batch.id)
                .values(provider_id=provider_id)
            )
            await insert_collecting(connection, task.batch_id, task.user_id, batch.id, self._new_id)

        await write(self._engine, transact)

    async def complete(self, task: Task) -> None:
        """Remove a task that has created provider batches; other requests are run."""
        in_range = and_(
            batch_requests.c.number >= task.first,
            batch_requests.c.number < task.first + task.size,
        )
        await self._give_back(task, OWN_WORKERS, in_range)

    async def end(self, task: Task) -> None:
        """Remove a task whose provider batch has ended; requests without results are run."""
        await self._give_back(task, task.provider_batch_id)

    async def sizes(self, task: Task) -> Mapping[int, int]:
        """Return the bytes of requests at the provider that have no result, by number."""
        query = select(batch_requests.c.number, func.length(batch_requests.c.body)).where(
            batch_requests.c.batch_id == task.batch_id,
            batch_requests.c.provider_batch_id == task.provider_batch_id,
            ~has_result(),
        )
        async with reading_once(self._engine) as connection:
            return {row[0]: row[1] for row in (await connection.execute(query)).all()}

    async def _give_back(
        self, task: Task, provider_batch_id: str, which: ColumnElement[bool] | None = None
    ) -> None:
        """Remove a task, and insert tasks that run requests without results.

        Args:
            task: the task.
            provider_batch_id: the requests' provider batch.
            which: further selects the requests.
        """
        is_left = and_(
            batch_requests.c.batch_id == task.batch_id,
            batch_requests.c.provider_batch_id == provider_batch_id,
            ~has_result(),
        )
        if which is not None:
            is_left = and_(is_left, which)

        async def transact(connection: AsyncConnection) -> None:
            await self._queue.check_held(connection, task, is_done=True)
            # Locks the row, for `set_finalizing`.
            await connection.execute(
                select(batches.c.id).where(batches.c.id == task.batch_id).with_for_update()
            )
            await insert_runs(
                connection,
                task.batch_id,
                task.user_id,
                provider_batch_id,
                is_left,
                task.total,
                self._new_id,
            )
            if provider_batch_id:
                await connection.execute(
                    delete(provider_batches).where(provider_batches.c.id == provider_batch_id)
                )
            now_ms = self._clock.now_ms()
            await set_finalizing(connection, task.batch_id, task.user_id, now_ms, self._new_id)

        await write(self._engine, transact)

    async def _found(self, which: ColumnElement[bool]) -> Sequence[ProviderBatch]:
        columns = [provider_batches.c[name] for name in ProviderBatch._fields]
        query = select(*columns).where(which).order_by(provider_batches.c.id)
        async with reading_once(self._engine) as connection:
            rows: Sequence[Any] = (await connection.execute(query)).all()
        return [ProviderBatch(*row) for row in rows]
