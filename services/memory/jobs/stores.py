"""All that is kept of memories, as whoever works on them is handed it."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from services.memory.archive.archive import Archive
from services.memory.jobs.job_queue import JobQueue
from services.memory.jobs.summaries import SummaryStore
from services.memory.profile.fact_store import FactStore
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.repository import MemoryRepository


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one database; their methods that take a connection share its transaction.

    Attributes:
        repository: memories and their transcripts.
        summaries: what was said in older turns.
        archive: the index of older turns.
        facts: what is known about users.
        queue: what is still to be done.
    """

    repository: MemoryRepository
    summaries: SummaryStore
    archive: Archive
    facts: FactStore
    queue: JobQueue

    async def rewind(self, connection: AsyncConnection, record: MemoryRecord, keep: int) -> None:
        """Take all but the first messages out of a memory, and all that came of them.

        Args:
            connection: that of `Repository.committing`.
            record: the same; it is brought up to date.
            keep: how many messages stay.
        """
        changed = await self.repository.rewind(connection, record, keep)
        record.summarised = await self.summaries.withdraw_from(connection, record.id, changed)
        await self.repository.set_summarised(connection, record.id, record.summarised)
        await self.queue.cancel_from(connection, record.id, changed)
        await self.archive.remove_from(connection, record.id, changed)
        await self.facts.withdraw_from(connection, record.id, changed)

    async def forget(self, connection: AsyncConnection, record: MemoryRecord) -> None:
        """Forget a memory and all that came of it alone."""
        await self.queue.cancel_from(connection, record.id, 0)
        await self.summaries.remove_memory(connection, record.id)
        await self.archive.remove(connection, record.id)
        await self.facts.remove_memory(connection, record.id)
        await self.repository.delete(connection, record)

    async def forget_profile(self, connection: AsyncConnection, owner_id: str) -> None:
        """Forget what is known about a user, and what was still to be looked through."""
        await self.queue.cancel_facts(connection, owner_id)
        await self.facts.remove_owner(connection, owner_id)
