"""Claims on memories: rows in the order of their tickets, which say who holds what.

Of each memory and mode, the claims with the lowest tickets hold it, as many as the mode
lets hold at once; the others wait. Tickets only grow, and a claim is made together with
its ticket while the queue's row is locked, so none ever comes in before another: whoever
has once been among the first holds the memory until its claim is gone, and nothing is
written to pass it on.

Nothing here need survive a power cut, after which nobody holds anything; a process takes
away what came back of its own.

A claim ends unless it is renewed, and whoever waits behind one that has ended takes it
away; those of a process of the same machine go as soon as it has died (see `Instances`).
That goes by the clocks of several machines, and so can be wrong; `guard` is what makes it
right: within a transaction it tells whether a claim is there, and keeps it there.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, func, insert, literal, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.database import insert_into, reading, writing
from services.common.ids import Source
from services.memory.storage.memory_records import taken_over
from services.memory.storage.tables import claims, memories, queues

WRITE = "write"
READ = "read"


_PREFIX = "claim_"


def claim_id_prefix(instance: str) -> str:
    """Return how the ids of a process's claims begin."""
    return f"{_PREFIX}{instance}_"


@dataclass(frozen=True, slots=True)
class QueueKey:
    """Those who want one memory in one mode, of whom the first `holders` have it."""

    entity_id: str
    mode: str
    holders: int


class _QueuePosition(NamedTuple):
    before: int
    first_end_ms: int
    is_there: bool


class LockQueue:
    """Claims in the database, each for `length_s` seconds from when it was last renewed.

    Every method raises `unavailable` when the database does not answer.
    """

    def __init__(self, engine: AsyncEngine, source: Source, length_s: float) -> None:
        self._engine = engine
        self._source = source
        self._length_ms = int(length_s * 1000)

    async def enter(self, queue: QueueKey, owner_id: str, claim_id: str) -> tuple[int, int]:
        """Make a claim at the end of a queue; return its ticket and how many stand before it.

        Raises:
            GatewayError: conflict, when there is no such memory of that owner's.
        """
        try:
            async with writing(self._engine, is_lasting=False) as connection:
                return await self._enter(connection, queue, owner_id, claim_id)
        except IntegrityError as error:
            # It was deleted between two statements.
            raise taken_over() from error

    async def count_before(self, queue: QueueKey, ticket: int) -> int | None:
        """Return how many stand before a ticket; None when its claim is gone.

        Those in its way that have ended are taken away.
        """
        now_ms = self._now_ms()
        async with reading(self._engine) as connection:
            view = await _look(connection, queue, ticket)
        if not view.is_there:
            return None
        if view.before >= queue.holders and view.first_end_ms <= now_ms:
            ended = (
                claims.c.entity_id == queue.entity_id,
                claims.c.mode == queue.mode,
                claims.c.ticket < ticket,
                claims.c.ends_at_ms <= now_ms,
            )
            async with writing(self._engine, is_lasting=False) as connection:
                return view.before - await _remove(connection, and_(*ended))
        return view.before

    async def leave(self, claim_id: str) -> None:
        """Take a claim away, if it is there."""
        async with writing(self._engine, is_lasting=False) as connection:
            await connection.execute(delete(claims).where(claims.c.id == claim_id))

    async def renew(self, claim_ids: Collection[str]) -> set[str]:
        """Extend claims to the whole length again; return those that are there."""
        # In one order everywhere, so that two who lock several never wait for each other.
        there = (
            select(claims.c.id)
            .where(claims.c.id.in_(claim_ids))
            .order_by(claims.c.id)
            .with_for_update(key_share=True)
        )
        async with writing(self._engine, is_lasting=False) as connection:
            renewed = await connection.scalars(
                update(claims)
                .where(claims.c.id.in_(there))
                .values(ends_at_ms=self._now_ms() + self._length_ms)
                .returning(claims.c.id)
            )
            return set(renewed)

    async def being_written(self, entity_ids: Collection[str]) -> set[str]:
        """Return those of the memories that somebody writes to, or waits to."""
        query = select(claims.c.entity_id).where(
            claims.c.entity_id.in_(entity_ids),
            claims.c.mode == WRITE,
            claims.c.ends_at_ms > self._now_ms(),
        )
        async with reading(self._engine) as connection:
            return set(await connection.scalars(query))

    async def remove_ended(self) -> int:
        """Take away every claim that has ended; return how many."""
        async with writing(self._engine, is_lasting=False) as connection:
            return await _remove(connection, claims.c.ends_at_ms <= self._now_ms())

    async def remove_of(self, instance: str) -> None:
        """Take away every claim of a process that has died."""
        theirs = claims.c.id.startswith(claim_id_prefix(instance), autoescape=True)
        async with writing(self._engine, is_lasting=False) as connection:
            await _remove(connection, theirs)

    async def remove_remains(
        self, queue: QueueKey, ticket: int, prefix: str, kept: Collection[str]
    ) -> None:
        """Take away claims before a ticket whose ids begin so, which are a process's.

        Args:
            queue: where.
            ticket: only claims before it.
            prefix: see `id_prefix`.
            kept: ids of claims that the process still has.
        """
        over = and_(
            claims.c.entity_id == queue.entity_id,
            claims.c.mode == queue.mode,
            claims.c.ticket < ticket,
            claims.c.id.startswith(prefix, autoescape=True),
            claims.c.id.not_in(kept),
        )
        async with writing(self._engine, is_lasting=False) as connection:
            await _remove(connection, over)

    async def _enter(
        self, connection: AsyncConnection, queue: QueueKey, owner_id: str, claim_id: str
    ) -> tuple[int, int]:
        ticket = await connection.scalar(_next_ticket(connection, queue, owner_id))
        if ticket is None:
            raise taken_over()
        await connection.execute(
            insert(claims).values(
                id=claim_id,
                entity_id=queue.entity_id,
                mode=queue.mode,
                ticket=ticket,
                ends_at_ms=self._now_ms() + self._length_ms,
            )
        )
        return ticket, (await _look(connection, queue, ticket)).before

    def _now_ms(self) -> int:
        return int(self._source.now() * 1000)


async def assert_claimed(
    connection: AsyncConnection, entity_id: str, claim_id: str, ticket: int
) -> None:
    """Hold a claim to the transaction's end: nobody can take it away before.

    Raises:
        GatewayError: conflict, when it is gone.
    """
    # The weakest lock that keeps a row: renewing it goes on.
    claim = (
        select(claims.c.id)
        .where(claims.c.id == claim_id, claims.c.entity_id == entity_id, claims.c.ticket == ticket)
        .with_for_update(read=True, key_share=True)
    )
    if await connection.scalar(claim) is None:
        raise taken_over()


async def remove_claims(connection: AsyncConnection, entity_id: str) -> None:
    """Take away every claim on a memory whose row the transaction has locked."""
    await connection.execute(delete(queues).where(queues.c.entity_id == entity_id))
    await _remove(connection, claims.c.entity_id == entity_id)


def has_live_claims(now_ms: int) -> ColumnElement[bool]:
    """Say of a row of `memories` that somebody holds it, or waits for it."""
    mine = and_(claims.c.entity_id == memories.c.id, claims.c.ends_at_ms > now_ms)
    return select(claims.c.id).where(mine).exists()


def _next_ticket(connection: AsyncConnection, queue: QueueKey, owner_id: str) -> Any:
    first = select(memories.c.id, literal(queue.mode), literal(1)).where(
        memories.c.id == queue.entity_id, memories.c.owner_id == owner_id
    )
    made = insert_into(connection, queues).from_select(
        [queues.c.entity_id, queues.c.mode, queues.c.tickets], first
    )
    return made.on_conflict_do_update(
        index_elements=[queues.c.entity_id, queues.c.mode],
        set_={"tickets": queues.c.tickets + 1},
    ).returning(queues.c.tickets)


async def _look(connection: AsyncConnection, queue: QueueKey, ticket: int) -> _QueuePosition:
    """See what a ticket's claim waits for, all at one moment."""
    ahead = claims.c.ticket < ticket
    query = select(
        func.count().filter(ahead),
        func.coalesce(func.min(claims.c.ends_at_ms).filter(ahead), 0),
        func.count().filter(~ahead),
    ).where(
        claims.c.entity_id == queue.entity_id,
        claims.c.mode == queue.mode,
        claims.c.ticket <= ticket,
    )
    before, first_end_ms, itself = (await connection.execute(query)).one()
    return _QueuePosition(before, first_end_ms, bool(itself))


async def _remove(connection: AsyncConnection, which: ColumnElement[bool]) -> int:
    ordered = select(claims.c.id).where(which).order_by(claims.c.id).with_for_update()
    removed = await connection.execute(delete(claims).where(claims.c.id.in_(ordered)))
    return removed.rowcount
