"""The rows of tasks of batches; each function works in the caller's transaction."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, and_, exists, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.batches.records import State, TaskKind
from services.batches.tables import batch_requests, batch_tasks, batches
from services.common import ids
from services.common.storage.row_inserts import insert_rows

# Requests of a task at least, and at most: few enough that all workers have some of a batch, and
# enough that claiming them costs next to nothing.
TASK_SIZE = 50
_MAX_TASK_SIZE = 200
# Tasks of a batch that is large enough.
_TASKS = 20
# Requests of a task that submits them to providers.
SUBMITTED_SIZE = 5_000
# In place of a provider batch's id: the gateway's own workers run the requests.
OWN_WORKERS = ""
_PREFIX = "task_"
_INSERT = insert(batch_tasks)


async def insert_task(
    connection: AsyncConnection,
    batch_id: str,
    user_id: str,
    kind: TaskKind,
    new_id: ids.IdGenerator,
) -> None:
    """Insert a free task of a whole batch."""
    await connection.execute(_INSERT, _row(batch_id, user_id, kind, 0, 0, new_id))


async def insert_tasks(
    connection: AsyncConnection,
    batch_id: str,
    user_id: str,
    total: int,
    new_id: ids.IdGenerator,
    *,
    submits: bool,
) -> None:
    """Insert the tasks that submit the requests of a batch to providers, or run them."""
    kind, size = (TaskKind.RUN, _run_size(total))
    if submits:
        kind, size = TaskKind.SUBMIT, SUBMITTED_SIZE
    rows = [
        _row(batch_id, user_id, kind, first, min(size, total - first), new_id)
        for first in range(0, total, size)
    ]
    await insert_rows(connection, batch_tasks, rows)


async def insert_runs(
    connection: AsyncConnection,
    batch_id: str,
    user_id: str,
    provider_batch_id: str,
    which: ColumnElement[bool],
    total: int,
    new_id: ids.IdGenerator,
) -> None:
    """Insert tasks that run the requests which `which` selects, all of one provider batch."""
    number, size = batch_requests.c.number, _run_size(total)
    query = select(number - number % size).where(which).distinct()
    starts: Iterable[int] = sorted((await connection.scalars(query)).all())
    rows = [
        _row(batch_id, user_id, TaskKind.RUN, first, size, new_id, provider_batch_id)
        for first in starts
    ]
    await insert_rows(connection, batch_tasks, rows)


async def insert_collecting(
    connection: AsyncConnection,
    batch_id: str,
    user_id: str,
    provider_batch_id: str,
    new_id: ids.IdGenerator,
) -> None:
    """Insert the task that waits for the end of a provider batch."""
    row = _row(batch_id, user_id, TaskKind.COLLECT, 0, 0, new_id, provider_batch_id)
    await connection.execute(_INSERT, row)


async def begin_batch(
    connection: AsyncConnection,
    batch_id: str,
    user_id: str,
    total: int,
    now_ms: int,
    new_id: ids.IdGenerator,
) -> None:
    """Insert the tasks of a batch whose requests are stored, and set its state."""
    change = (
        update(batches)
        .where(batches.c.id == batch_id)
        .values(state=State.IN_PROGRESS, total=total, started_at_ms=now_ms, deleted_at_ms=0)
        .returning(batches.c.cancelling_at_ms, batches.c.own_workers)
    )
    row = (await connection.execute(change)).one()
    if not row.cancelling_at_ms:
        submits = not row.own_workers
        await insert_tasks(connection, batch_id, user_id, total, new_id, submits=submits)
        return
    # It has been cancelled meanwhile, and there is nothing to be run.
    await set_finalizing(connection, batch_id, user_id, now_ms, new_id)


async def set_finalizing(
    connection: AsyncConnection,
    batch_id: str,
    user_id: str,
    now_ms: int,
    new_id: ids.IdGenerator,
) -> None:
    """Insert the task that finalizes a batch, if it was the last to be run.

    The row of the batch must be locked by this transaction, so that of two workers that complete
    its last two tasks, the second sees that no other is left.
    """
    is_left = exists().where(
        batch_tasks.c.batch_id == batch_id,
        batch_tasks.c.kind != TaskKind.FINALIZE,
    )
    if await connection.scalar(select(is_left)):
        return
    which = and_(
        batches.c.id == batch_id, batches.c.state.in_((State.VALIDATING, State.IN_PROGRESS))
    )
    change = update(batches).where(which).values(state=State.FINALIZING, finalizing_at_ms=now_ms)
    if (await connection.execute(change)).rowcount:
        await insert_task(connection, batch_id, user_id, TaskKind.FINALIZE, new_id)


def _run_size(total: int) -> int:
    """Return the requests of a task that runs some of a batch."""
    return min(_MAX_TASK_SIZE, max(TASK_SIZE, total // _TASKS))


def _row(
    batch_id: str,
    user_id: str,
    kind: TaskKind,
    first: int,
    size: int,
    new_id: ids.IdGenerator,
    provider_batch_id: str = OWN_WORKERS,
) -> dict[str, object]:
    return {
        "id": new_id(_PREFIX),
        "batch_id": batch_id,
        "user_id": user_id,
        "kind": kind,
        "first": first,
        "size": size,
        "provider_batch_id": provider_batch_id,
        "not_before_ms": 0,
        "holder": "",
        "ends_at_ms": 0,
        "claims": 0,
        "begun_alone": 0,
    }
