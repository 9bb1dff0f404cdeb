"""All stores of memories in one database, and the deletions that affect several of them."""

from dataclasses import dataclass
from typing import Self

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.clock import Clock
from services.memory.archive.archive import Archive
from services.memory.jobs.job_queue import JobQueue
from services.memory.jobs.summaries import SummaryStore
from services.memory.profile.fact_store import FactStore
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.quota import delete_memory
from services.memory.storage.repository import MemoryRepository


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one database; their methods that take a connection share its transaction.

    Attributes:
        repository: memories and their transcripts.
        summaries: summaries of older turns.
        archive: the index of older turns.
        facts: facts about users.
        queue: background jobs.
    """

    repository: MemoryRepository
    summaries: SummaryStore
    archive: Archive
    facts: FactStore
    queue: JobQueue

    @classmethod
    def open(cls, database: AsyncEngine, clock: Clock, queue: JobQueue) -> Self:
        """Return the stores of a migrated database; `queue` is the job queue of that database."""
        return cls(
            MemoryRepository(database, clock),
            SummaryStore(database, clock),
            Archive(database, clock),
            FactStore(database),
            queue,
        )

    async def rewind(
        self, connection: AsyncConnection, record: MemoryRecord, keep_messages: int
    ) -> None:
        """Remove all but the first messages from a memory, with all that was derived from them.

        Args:
            connection: the connection of `MemoryLocks.committing`.
            record: the record of `MemoryLocks.committing`; it is updated.
            keep_messages: number of messages that stay.
        """
        changed = await self.repository.rewind(connection, record, keep_messages)
        record.summarised = await self.summaries.withdraw_from(connection, record.id, changed)
        await self.repository.set_summarised(connection, record.id, record.summarised)
        await self.queue.cancel_from(connection, record.id, changed)
        await self.archive.remove_from(connection, record.id, changed)
        await self.facts.withdraw_from(connection, record.id, changed)

    async def delete(self, connection: AsyncConnection, record: MemoryRecord) -> None:
        """Delete a memory, with all that was derived from it alone."""
        await self.queue.cancel_from(connection, record.id, 0)
        await self.summaries.remove_memory(connection, record.id)
        await self.archive.remove(connection, record.id)
        await self.facts.withdraw_from(connection, record.id, 0)
        await delete_memory(connection, record)

    async def delete_profile(self, connection: AsyncConnection, owner_id: str) -> None:
        """Delete all facts about a user, and the jobs that would extract more."""
        await self.queue.cancel_facts(connection, owner_id)
        await self.facts.remove_owner(connection, owner_id)
