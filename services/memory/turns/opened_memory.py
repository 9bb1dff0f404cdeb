"""The memory of a turn that writes: found or created, and read, in one transaction."""

from collections.abc import Sequence
from typing import ClassVar

from sqlalchemy import ColumnElement, and_, bindparam
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.process.byte_budget import UNCHARGED
from services.memory.jobs.stores import Stores
from services.memory.jobs.summaries import NO_SUMMARY
from services.memory.jobs.windows import Windows
from services.memory.storage.memory_records import WAS_USED, MemoryRecord
from services.memory.storage.stored_turns import StoredTurn
from services.memory.storage.tables import memories
from services.memory.storage.transcript_rows import CONTENT_FACTOR, measure_turns, read_turns


class OpenedMemory:
    """An `Opening` that reserves a memory, and reads what a turn of it needs.

    Args:
        stores: the stores of the database.
        owner_id: the user.
        memory_id: the name of the memory, which is created if there is none.
        max_memories: how many the user may have.
        windows: which turns are shown.

    Attributes:
        was_read: whether the following were read: not if the lock was waited for.
        newest: the newest turns of the memory; None if they are large, and were not read.
        summary: the current summary of older turns.
        owner_bytes: the size of the owner's memories and responses.
    """

    # It had a turn: no other memory counts as one.
    condition: ClassVar[ColumnElement[bool]] = and_(
        memories.c.owner_id == bindparam("its_owner_id"),
        memories.c.memory_id == bindparam("its_name"),
        WAS_USED,
    )

    def __init__(
        self,
        stores: Stores,
        owner_id: str,
        memory_id: str,
        max_memories: int,
        windows: Windows,
    ) -> None:
        self._stores = stores
        self._owner_id = owner_id
        self._memory_id = memory_id
        self._max_memories = max_memories
        self._windows = windows
        self.parameters = {"its_owner_id": owner_id, "its_name": memory_id}
        self.was_read = False
        self.newest: Sequence[StoredTurn] | None = ()
        self.summary = NO_SUMMARY
        self.owner_bytes = 0

    async def make(self, connection: AsyncConnection) -> str:
        """Return the id of the memory, reserved for this turn.

        Raises:
            GatewayError: memory_quota_exceeded.
        """
        reserved = await self._stores.repository.reserve(
            connection, self._owner_id, self._memory_id, self._max_memories
        )
        return reserved.id

    async def read(
        self, connection: AsyncConnection, record: MemoryRecord, owner_bytes: int
    ) -> None:
        """Read the newest turns of the memory, and the summary of older ones."""
        self.owner_bytes = owner_bytes
        if record.turns:
            first = newest_turns(record, self._windows).start
            is_large = not is_small(record) and (
                await measure_turns(connection, record.id, first, record.turns) > UNCHARGED
            )
            self.newest = (
                None if is_large else await read_turns(connection, record.id, first, record.turns)
            )
        if record.summarised:
            self.summary = await self._stores.summaries.current_in(connection, record.id)
        self.was_read = True

    async def leave(self, connection: AsyncConnection, record: MemoryRecord) -> None:
        """Release the reservation."""
        await self._stores.repository.release(connection, record)


def is_small(record: MemoryRecord) -> bool:
    """Return whether all turns of a memory are read without being measured, and charged, before."""
    return record.size_bytes <= CONTENT_FACTOR * UNCHARGED


def newest_turns(record: MemoryRecord, windows: Windows) -> range:
    """Return the numbers of the last turn of a memory, and of those shown with it or its next."""
    shown = windows.view(max(record.turns - 1, 0), record.summarised).raw
    return range(min(shown.start, record.turns), record.turns + 1)
