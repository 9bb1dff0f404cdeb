"""The memory of a turn that writes: found or created, and read, in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlalchemy import ColumnElement, and_, bindparam
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.process.byte_budget import UNCHARGED
from services.memory.jobs.stores import Stores
from services.memory.jobs.summaries import NO_SUMMARY, Summary
from services.memory.jobs.windows import Windows
from services.memory.storage.memory_records import WAS_USED, MemoryRecord
from services.memory.storage.stored_turns import StoredTurn
from services.memory.storage.tables import memories
from services.memory.storage.transcript_rows import measure_turns, read_turns


@dataclass
class OpenedMemory:
    """An `Opening` that reserves a memory, and reads what a turn of it needs.

    Attributes:
        stores: the stores of the database.
        owner_id: the user.
        memory_id: the name of the memory, which is created if there is none.
        max_memories: how many the user may have.
        windows: which turns are shown.
        newest: the newest turns of the memory; None if they are large, and were not read. This and
            what follows is not read if the lock has to be waited for.
        summary: the current summary of older turns.
        owner_bytes: the size of the owner's memories and responses.
    """

    # It had a turn: no other memory counts as one.
    condition: ClassVar[ColumnElement[bool]] = and_(
        memories.c.owner_id == bindparam("its_owner_id"),
        memories.c.memory_id == bindparam("its_name"),
        WAS_USED,
    )

    stores: Stores
    owner_id: str
    memory_id: str
    max_memories: int
    windows: Windows
    newest: Sequence[StoredTurn] | None = ()
    summary: Summary | None = NO_SUMMARY
    owner_bytes: int = 0

    @property
    def parameters(self) -> dict[str, str]:
        """The values of the parameters of `condition`."""
        return {"its_owner_id": self.owner_id, "its_name": self.memory_id}

    async def make(self, connection: AsyncConnection) -> str:
        """Return the id of the memory, reserved for this turn.

        Raises:
            GatewayError: memory_quota_exceeded.
        """
        reserved = await self.stores.repository.reserve(
            connection, self.owner_id, self.memory_id, self.max_memories
        )
        return reserved.id

    async def read(
        self, connection: AsyncConnection, record: MemoryRecord, owner_bytes: int
    ) -> None:
        """Read the newest turns of the memory, and the summary of older ones."""
        self.owner_bytes = owner_bytes
        if record.turns:
            first = self.windows.first_needed(record.turns, record.summarised)
            is_large = not record.is_small and (
                await measure_turns(connection, record.id, first, record.turns) > UNCHARGED
            )
            self.newest = (
                None if is_large else await read_turns(connection, record.id, first, record.turns)
            )
        if record.summarised:
            self.summary = await self.stores.summaries.current_in(connection, record.id)

    async def leave(self, connection: AsyncConnection, record: MemoryRecord) -> None:
        """Release the reservation."""
        await self.stores.repository.release(connection, record)
