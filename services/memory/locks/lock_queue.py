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
from typing import Any

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.storage.database import reading_once, write
from services.common.storage.leased_rows import LeasedRows, delete_in_order, is_held_by_process
from services.memory.locks.claim_rows import (
    CLAIM,
    WRITE,
    QueueKey,
    is_ahead,
    position_of,
)
from services.memory.storage.tables import claims


class LockQueue:
    """The claims on all memories, each leased for `length_s` seconds.

    Every method raises `unavailable` when the database does not answer.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock, length_s: float) -> None:
        self._engine = engine
        self._rows = LeasedRows(claims, clock, length_s)

    def ends_at_ms(self) -> int:
        """Return when a claim that is added now expires, in Unix milliseconds."""
        return self._rows.ends_at_ms()

    async def count_ahead(self, queue: QueueKey, ticket: int) -> int | None:
        """Return the number of claims ahead of a ticket; None when the ticket's claim is gone.

        Expired claims ahead of it are removed.
        """
        async with reading_once(self._engine) as connection:
            position = await position_of(connection, queue, ticket)
        if not position.is_queued:
            return None
        ends = (position.first_end_ms, position.last_end_ms)
        if position.ahead < queue.mode.holders or not any(map(self._rows.is_expired, ends)):
            return position.ahead
        expired = and_(is_ahead(queue, ticket), self._rows.has_expired())
        return position.ahead - await self._delete(expired)

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
            is_ahead(queue, ticket),
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
