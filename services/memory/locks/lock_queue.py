"""The queues for read and write locks on memories, as rows in the database.

A claim is a row in the queue of one memory and mode. The claims with the lowest tickets hold the
lock, as many as the mode allows at once; the others wait. Tickets only grow, and a claim is
inserted together with its ticket while the queue's row is locked, so a claim never comes before
an earlier one: once it is among the first it stays there until it is removed, and nothing is
written to pass a lock on.

Claims are leased: they expire unless renewed, and a call that waits behind an expired claim removes
it. Claims of a process on the same machine are removed as soon as it has died (`ProcessRegistry`).
Expiry depends on the clocks of several machines and so can be wrong. `assert_claimed` makes
commits safe: within a transaction it checks that a claim exists, and prevents its removal.

Claims need not survive a power cut, which ends the calls that hold them. A process removes claims
of its own that have reappeared.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, partial
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
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.clock import Clock
from services.common.storage.database import insert_in, reading_once, write
from services.common.storage.leased_rows import LeasedRows, delete_in_order, is_held_by_process
from services.common.storage.owners import owners
from services.memory.locks.opening import Opening
from services.memory.storage.memory_records import (
    COLUMNS,
    MemoryRecord,
    lock_lost_error,
    to_record,
)
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


class Entry(NamedTuple):
    """A claim that was added to a queue: its ticket, the claims ahead, and the memory's record."""

    queue: QueueKey
    ticket: int
    ahead: int
    record: MemoryRecord


# Built once: SQLAlchemy takes longer to build them than to execute them.
_ENTERED = select(
    *COLUMNS,
    select(func.count())
    .where(
        claims.c.entity_id == bindparam("entity_id"),
        claims.c.mode == bindparam("mode"),
        claims.c.ticket < bindparam("ticket"),
    )
    .scalar_subquery(),
    func.coalesce(
        select(owners.c.size_bytes)
        .where(owners.c.owner_id == memories.c.owner_id)
        .scalar_subquery(),
        0,
    ),
).where(memories.c.id == bindparam("entity_id"))
_ADD_CLAIM = insert(claims)
_REMOVE_CLAIM = delete(claims).where(claims.c.id == bindparam("claim_id"))
_GIVE_UP = delete(claims).where(
    claims.c.id == bindparam("claim_id"),
    claims.c.entity_id == bindparam("claimed_id"),
    claims.c.ticket == bindparam("claim_ticket"),
)


_IS_MADE = memories.c.id == bindparam("made_id")


class _QueuePosition(NamedTuple):
    ahead: int
    first_end_ms: int
    last_end_ms: int
    is_queued: bool


class LockQueue:
    """The claims on all memories, each leased for `length_s` seconds.

    Every method raises `unavailable` when the database does not answer.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock, length_s: float) -> None:
        self._engine = engine
        self._rows = LeasedRows(claims, clock, length_s)

    async def enter(self, mode: LockMode, claim_id: str, opening: Opening) -> Entry:
        """Add a claim at the end of a queue of the memory that is opened.

        Raises:
            GatewayError: conflict, when the memory is gone; as `Opening.make`.
        """

        async def enter(connection: AsyncConnection) -> Entry:
            entity_id, ticket = await _take_ticket(connection, mode, opening)
            queued = {"entity_id": entity_id, "mode": mode.name, "ticket": ticket}
            await connection.execute(
                _ADD_CLAIM, {**queued, "id": claim_id, "ends_at_ms": self._rows.ends_at_ms()}
            )
            # Read last: whoever held the lock before has committed.
            *memory, ahead, owner_bytes = (await connection.execute(_ENTERED, queued)).one()
            record = to_record(memory)
            if ahead < mode.holders:
                await opening.read(connection, record, owner_bytes)
            return Entry(QueueKey(entity_id, mode), ticket, ahead, record)

        try:
            return await write(self._engine, enter, is_lasting=False)
        except IntegrityError as error:
            # The memory was deleted between two statements.
            raise lock_lost_error() from error

    async def count_ahead(self, queue: QueueKey, ticket: int) -> int | None:
        """Return the number of claims ahead of a ticket; None when the ticket's claim is gone.

        Expired claims ahead of it are removed.
        """
        async with reading_once(self._engine) as connection:
            position = await _position(connection, queue, ticket)
        if not position.is_queued:
            return None
        ends = (position.first_end_ms, position.last_end_ms)
        if position.ahead < queue.mode.holders or not any(map(self._rows.is_expired, ends)):
            return position.ahead
        expired = and_(_is_ahead(queue, ticket), self._rows.has_expired())
        return position.ahead - await self._delete(expired)

    async def leave(self, claim_id: str) -> None:
        """Remove a claim, if it exists."""
        await write(self._engine, partial(remove_claim, claim_id=claim_id), is_lasting=False)

    async def leave_memory(self, claim_id: str, opening: Opening, record: MemoryRecord) -> None:
        """Leave a memory that was opened, and remove the claim on it."""

        async def leave(connection: AsyncConnection) -> None:
            await opening.leave(connection, record)
            await remove_claim(connection, claim_id)

        await write(self._engine, leave, is_lasting=False)

    async def renew(self, claim_ids: Collection[str]) -> set[str]:
        """Renew claims for the whole length of a lease; return the ids of those that exist."""
        renewed = await write(
            self._engine,
            lambda connection: self._rows.hold(connection, claims.c.id.in_(claim_ids)),
            is_lasting=False,
        )
        return {row.id for row in renewed}

    async def being_written(self, entity_ids: Collection[str]) -> set[str]:
        """Return the ids of the memories whose write lock is held or waited for."""
        query = select(claims.c.entity_id).where(
            claims.c.entity_id.in_(entity_ids),
            claims.c.mode == WRITE,
            ~self._rows.has_expired(),
        )
        async with reading_once(self._engine) as connection:
            return set(await connection.scalars(query))

    async def remove_expired(self) -> int:
        """Remove every claim that has expired; return their number."""
        return await self._delete(self._rows.has_expired())

    async def remove_of_process(self, process: str) -> None:
        """Remove every claim of a process that has died."""
        await self._delete(is_held_by_process(claims.c.id, CLAIM, process))

    async def remove_orphans(
        self, queue: QueueKey, ticket: int, process: str, open_claims: Collection[str]
    ) -> None:
        """Remove the claims of a process that it does not use any more.

        Args:
            queue: the queue.
            ticket: only claims ahead of it are removed.
            process: name of the process.
            open_claims: ids of the claims that the process still uses.
        """
        orphans = and_(
            _is_ahead(queue, ticket),
            is_held_by_process(claims.c.id, CLAIM, process),
            claims.c.id.not_in(open_claims),
        )
        await self._delete(orphans)

    async def _delete(self, which: Any) -> int:
        """Delete claims; return their number."""
        return await write(
            self._engine,
            lambda connection: delete_in_order(connection, claims, which),
            is_lasting=False,
        )


async def assert_claimed(
    connection: AsyncConnection, entity_id: str, claim_id: str, ticket: int
) -> None:
    """Check that a claim exists, and prevent its removal until the transaction ends.

    Raises:
        GatewayError: conflict, when it is gone.
    """
    # The weakest row lock that prevents removal: the claim can still be renewed.
    claim = (
        select(claims.c.id)
        .where(claims.c.id == claim_id, claims.c.entity_id == entity_id, claims.c.ticket == ticket)
        .with_for_update(read=True, key_share=True)
    )
    if await connection.scalar(claim) is None:
        raise lock_lost_error()


async def give_up_claim(
    connection: AsyncConnection, entity_id: str, claim_id: str, ticket: int
) -> None:
    """Remove a claim that has to exist; nobody else holds the lock until the transaction ends.

    Raises:
        GatewayError: conflict, when it is gone.
    """
    removed = await connection.execute(
        _GIVE_UP, {"claim_id": claim_id, "claimed_id": entity_id, "claim_ticket": ticket}
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
    made = insert_in(dialect, queues).from_select(
        [queues.c.entity_id, queues.c.mode, queues.c.tickets], first
    )
    taken: Executable = made.on_conflict_do_update(
        index_elements=[queues.c.entity_id, queues.c.mode],
        set_={"tickets": queues.c.tickets + 1},
    ).returning(queues.c.entity_id, queues.c.tickets)
    return taken


def _is_ahead(queue: QueueKey, ticket: int) -> Any:
    return and_(_is_in(queue), claims.c.ticket < ticket)


def _is_in(queue: QueueKey) -> Any:
    return and_(claims.c.entity_id == queue.entity_id, claims.c.mode == queue.mode.name)


async def _position(connection: AsyncConnection, queue: QueueKey, ticket: int) -> _QueuePosition:
    """Return the position of a ticket in its queue, read in one statement."""
    ahead = claims.c.ticket < ticket
    query = select(
        func.count().filter(ahead),
        func.coalesce(func.min(claims.c.ends_at_ms).filter(ahead), 0),
        func.coalesce(func.max(claims.c.ends_at_ms).filter(ahead), 0),
        func.count().filter(~ahead),
    ).where(_is_in(queue), claims.c.ticket <= ticket)
    count, first_end_ms, last_end_ms, own = (await connection.execute(query)).one()
    return _QueuePosition(count, first_end_ms, last_end_ms, bool(own))
