"""The summaries of memories in the database.

The summaries of one memory form a chain, in which each covers all turns that the one before covers.
A rewind withdraws the summaries that cover removed turns; the last one before them is the current
summary again. A withdrawn summary stays as a row, superseded.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import ids
from services.common.clock import Clock
from services.common.storage.database import reading, reading_once
from services.memory.storage.tables import summaries

PREFIX = "summary_"

# Built once: that takes longer than to execute it.
_CURRENT = (
    select(summaries)
    .where(summaries.c.entity_id == bindparam("of_memory"), ~summaries.c.superseded)
    .order_by(summaries.c.last_turn.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of a memory up to a turn.

    Attributes:
        text: the text; "" if nothing has been summarised.
        last_turn: number of the last turn that it covers, or 0.
        degraded: whether it was made without the configured model.
        first_turn: number of the first turn that it was made from; earlier turns come from the
            summary before.
        id: id of the row, or "".
    """

    text: str = ""
    last_turn: int = 0
    degraded: bool = False
    first_turn: int = 1
    id: str = ""


NO_SUMMARY = Summary()


class SummaryStore:
    """The summaries of all memories.

    Methods that take a connection work in the caller's transaction; every method raises
    `unavailable` when the database does not answer.
    """

    def __init__(
        self, engine: AsyncEngine, clock: Clock, *, new_id: ids.IdGenerator = ids.new_id
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._new_id = new_id

    async def current(self, entity_id: str) -> Summary:
        """Return the current summary of a memory."""
        async with reading_once(self._engine) as connection:
            return await self.current_in(connection, entity_id)

    async def current_in(self, connection: AsyncConnection, entity_id: str) -> Summary:
        """Return the current summary of a memory, read in the caller's transaction."""
        row = (await connection.execute(_CURRENT, {"of_memory": entity_id})).one_or_none()
        return _to_summary(row)

    async def before(self, entity_id: str, turn: int) -> Summary:
        """Return the last summary that covers neither a turn nor later ones."""
        async with reading_once(self._engine) as connection:
            earlier = _CURRENT.where(summaries.c.last_turn < turn)
            row = (await connection.execute(earlier, {"of_memory": entity_id})).one_or_none()
            return _to_summary(row)

    async def up_to(self, entity_id: str, last_turn: int) -> tuple[Summary, Summary, bool]:
        """Return the data for making the summary up to a turn again.

        Returns:
            The summary that ends at `last_turn`, the one before it, and whether all later ones are
            degraded too; the first is `NO_SUMMARY` if there is none.
        """
        async with reading(self._engine) as connection:
            upto = _CURRENT.where(summaries.c.last_turn <= last_turn).limit(2)
            rows = (await connection.execute(upto, {"of_memory": entity_id})).all()
            later = await connection.scalar(
                select(func.count()).where(
                    summaries.c.entity_id == entity_id,
                    summaries.c.last_turn > last_turn,
                    ~summaries.c.superseded,
                    ~summaries.c.degraded,
                )
            )
        newest = [_to_summary(row) for row in rows]
        if not newest or newest[0].last_turn != last_turn:
            return NO_SUMMARY, NO_SUMMARY, False
        return newest[0], newest[1] if len(newest) > 1 else NO_SUMMARY, not later

    async def add(
        self, connection: AsyncConnection, entity_id: str, epoch: int, summary: Summary
    ) -> None:
        """Store a summary as the current one; its `id` is ignored."""
        await connection.execute(
            insert(summaries).values(
                **asdict(replace(summary, id=self._new_id(PREFIX))),
                entity_id=entity_id,
                epoch=epoch,
                superseded=False,
                created_at_ms=self._clock.now_ms(),
            )
        )

    async def improve(self, connection: AsyncConnection, summary_id: str, text: str) -> bool:
        """Replace the text of a degraded summary; return False when it was withdrawn."""
        improved = await connection.execute(
            update(summaries)
            .where(summaries.c.id == summary_id, ~summaries.c.superseded)
            .values(text=text, degraded=False)
        )
        return bool(improved.rowcount)

    async def withdraw_from(
        self, connection: AsyncConnection, entity_id: str, first_turn: int
    ) -> int:
        """Withdraw the summaries that cover a turn or later ones.

        The caller has locked the memory's row.

        Returns:
            The last turn that the current summary covers, or 0.
        """
        await connection.execute(
            update(summaries)
            .where(
                summaries.c.entity_id == entity_id,
                summaries.c.last_turn >= first_turn,
                ~summaries.c.superseded,
            )
            .values(superseded=True)
        )
        return (await self.current_in(connection, entity_id)).last_turn

    async def remove_memory(self, connection: AsyncConnection, entity_id: str) -> None:
        """Erase all summaries of a memory."""
        await connection.execute(delete(summaries).where(summaries.c.entity_id == entity_id))


def _to_summary(row: Row[Any] | None) -> Summary:
    if row is None:
        return NO_SUMMARY
    return Summary(row.text, row.last_turn, row.degraded, row.first_turn, row.id)
