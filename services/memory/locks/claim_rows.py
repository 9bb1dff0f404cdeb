"""The rows of claims on memories: statements in the transactions of `lock_queue` and `locks`."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Executable,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.storage.database import insert_in
from services.common.storage.owners import owners
from services.memory.locks.opening import Opening
from services.memory.storage.memory_records import COLUMNS, MemoryRecord, lock_lost_error, to_record
from services.memory.storage.tables import claims, memories, queues

WRITE = "write"
READ = "read"

# Prefix of the ids of claims; the name of their process follows.
CLAIM = "claim"


class LockMode(NamedTuple):
    """A mode in which memories are locked, by so many claims at once."""

    name: str
    holders: int


@dataclass(frozen=True, slots=True)
class QueueKey:
    """The queue of one memory and mode, of which the first claims hold the lock."""

    entity_id: str
    mode: LockMode


@dataclass(eq=False, slots=True)
class LockClaim:
    """A claim that this process has added to a queue, and so the lock, once it need not wait.

    Attributes:
        id: its id.
        queue: its queue.
        ticket: its place in the queue; the fencing token of a write lock, as it is higher than
            that of any earlier one on the memory.
        ahead: number of claims ahead of it, when they were last counted.
        record: the memory's record, as of when the claim was added.
        has_waited: whether the lock was not free then, so that others may have changed the memory
            since.
        is_removed: whether it was removed with a commit.
        woken: set when the lock may be free.
        lost: set when others have removed the claim, so that a commit would be refused.
    """

    id: str
    queue: QueueKey
    ticket: int
    ahead: int
    record: MemoryRecord
    has_waited: bool
    is_removed: bool = False
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_waiting(self) -> bool:
        """Whether as many claims as may hold the lock are ahead of it."""
        return self.ahead >= self.queue.mode.holders


# Built once: SQLAlchemy takes longer to build them than to execute them.
_CLAIMED = memories.c.id == bindparam("claimed_id")
# Returns the memory, the claims ahead, and the size of all that the memory's owner stores.
_ADD_CLAIM = insert(claims).returning(
    *(select(column).where(_CLAIMED).scalar_subquery() for column in COLUMNS),
    select(func.count())
    .select_from(_ahead := claims.alias("ahead"))
    .where(
        _ahead.c.entity_id == bindparam("claimed_id"),
        _ahead.c.mode == bindparam("claimed_mode"),
        _ahead.c.ticket < bindparam("claim_ticket"),
    )
    .scalar_subquery(),
    func.coalesce(
        select(owners.c.size_bytes)
        .where(owners.c.owner_id == select(memories.c.owner_id).where(_CLAIMED).scalar_subquery())
        .scalar_subquery(),
        0,
    ),
)
_REMOVE_CLAIM = delete(claims).where(claims.c.id == bindparam("claim_id"))
_GIVE_UP = delete(claims).where(
    claims.c.id == bindparam("claim_id"),
    claims.c.entity_id == bindparam("claimed_id"),
    claims.c.ticket == bindparam("claim_ticket"),
)


_IS_MADE = memories.c.id == bindparam("made_id")


class QueuePosition(NamedTuple):
    """The claims ahead of a ticket, their first and last expiry, and whether it is still queued."""

    ahead: int
    first_end_ms: int
    last_end_ms: int
    is_queued: bool


async def add_claim(
    connection: AsyncConnection,
    claim_id: str,
    mode: LockMode,
    opening: Opening,
    ends_at_ms: Callable[[], int],
) -> LockClaim:
    """Add a claim at the end of a queue of the memory that is opened; read it if the lock is free.

    Args:
        connection: the connection of the transaction.
        claim_id: the id of the claim.
        mode: the mode of the lock.
        opening: finds the memory.
        ends_at_ms: returns when the claim expires.

    Raises:
        GatewayError: conflict, when the memory is gone; as `Opening.make`.
        IntegrityError: the memory was deleted between two statements.
    """
    entity_id, ticket = await _take_ticket(connection, mode, opening)
    added = await connection.execute(
        _ADD_CLAIM,
        {
            "id": claim_id,
            "entity_id": entity_id,
            "mode": mode.name,
            "ticket": ticket,
            "ends_at_ms": ends_at_ms(),
            "claimed_id": entity_id,
            "claimed_mode": mode.name,
            "claim_ticket": ticket,
        },
    )
    # Read after the ticket was taken: whoever held the lock before has committed.
    *memory, ahead, owner_bytes = added.one()
    record = to_record(memory)
    waits = ahead >= mode.holders
    if not waits:
        await opening.read(connection, record, owner_bytes)
    return LockClaim(claim_id, QueueKey(entity_id, mode), ticket, ahead, record, waits)


async def leave_memory(connection: AsyncConnection, claim: LockClaim, opening: Opening) -> None:
    """Leave a memory that was opened, and remove the claim on it."""
    await opening.leave(connection, claim.record)
    await remove_claim(connection, claim.id)


async def assert_claimed(connection: AsyncConnection, claim: LockClaim) -> None:
    """Check that a claim exists, and prevent its removal until the transaction ends.

    Raises:
        GatewayError: conflict, when it is gone.
    """
    # The weakest row lock that prevents removal: the claim can still be renewed.
    row = (
        select(claims.c.id)
        .where(
            claims.c.id == claim.id,
            claims.c.entity_id == claim.record.id,
            claims.c.ticket == claim.ticket,
        )
        .with_for_update(read=True, key_share=True)
    )
    if await connection.scalar(row) is None:
        raise lock_lost_error()


async def give_up_claim(connection: AsyncConnection, claim: LockClaim) -> None:
    """Remove a claim that has to exist; nobody else holds the lock until the transaction ends.

    Raises:
        GatewayError: conflict, when it is gone.
    """
    removed = await connection.execute(
        _GIVE_UP,
        {"claim_id": claim.id, "claimed_id": claim.record.id, "claim_ticket": claim.ticket},
    )
    if not removed.rowcount:
        raise lock_lost_error()


async def remove_claim(connection: AsyncConnection, claim_id: str) -> None:
    """Remove a claim, if it exists."""
    await connection.execute(_REMOVE_CLAIM, {"claim_id": claim_id})


async def _take_ticket(
    connection: AsyncConnection, mode: LockMode, opening: Opening
) -> tuple[str, int]:
    """Return the id of the memory that is opened, and the next ticket of its queue."""
    dialect = connection.dialect.name
    queue_mode = {"queue_mode": mode.name}
    next_ticket = _next_ticket(dialect, opening.condition)
    row = (await connection.execute(next_ticket, opening.parameters | queue_mode)).one_or_none()
    if row is None:
        made = {"made_id": await opening.make(connection)}
        row = (
            await connection.execute(_next_ticket(dialect, _IS_MADE), made | queue_mode)
        ).one_or_none()
    if row is None:
        raise lock_lost_error()
    entity_id, ticket = row
    return entity_id, ticket


@cache
def _next_ticket(dialect: str, which: ColumnElement[bool]) -> Executable:
    """Return the statement that adds to the tickets of the queue of a memory; built once."""
    # The memory is locked before its queue, in the same order as when a memory is deleted.
    first = (
        select(memories.c.id, bindparam("queue_mode", type_=queues.c.mode.type), literal(1))
        .where(which)
        .with_for_update(read=True, key_share=True)
    )
    inserted = insert_in(dialect, queues).from_select(
        [queues.c.entity_id, queues.c.mode, queues.c.tickets], first
    )
    next_ticket: Executable = inserted.on_conflict_do_update(
        index_elements=[queues.c.entity_id, queues.c.mode],
        set_={"tickets": queues.c.tickets + 1},
    ).returning(queues.c.entity_id, queues.c.tickets)
    return next_ticket


def is_ahead(queue: QueueKey, ticket: int) -> Any:
    """Return the SQL condition that a claim of a queue is ahead of a ticket."""
    return and_(_is_in(queue), claims.c.ticket < ticket)


def _is_in(queue: QueueKey) -> Any:
    return and_(claims.c.entity_id == queue.entity_id, claims.c.mode == queue.mode.name)


async def position_of(connection: AsyncConnection, queue: QueueKey, ticket: int) -> QueuePosition:
    """Return the position of a ticket in its queue, read in one statement."""
    ahead = claims.c.ticket < ticket
    query = select(
        func.count().filter(ahead),
        func.coalesce(func.min(claims.c.ends_at_ms).filter(ahead), 0),
        func.coalesce(func.max(claims.c.ends_at_ms).filter(ahead), 0),
        func.count().filter(~ahead),
    ).where(_is_in(queue), claims.c.ticket <= ticket)
    count, first_end_ms, last_end_ms, own = (await connection.execute(query)).one()
    return QueuePosition(count, first_end_ms, last_end_ms, bool(own))
