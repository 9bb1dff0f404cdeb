"""Erasure of a user's memories, and of the facts about the user."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.storage.database import write
from services.common.storage.erasing import CountErased
from services.common.storage.owners import remove_empty_owner
from services.memory.jobs.stores import Stores
from services.memory.storage.memory_records import COLUMNS, to_record
from services.memory.storage.tables import memories

_FACTS_AT_ONCE = 500


class MemoryErasure:
    """Removes batches of what the memory service stores of a user.

    The memory of a turn that is in progress is removed too: the turn cannot be committed then.
    """

    def __init__(self, engine: AsyncEngine, stores: Stores) -> None:
        self._engine = engine
        self._stores = stores

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove a memory or, if there is none, some facts; return the number of removed things.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """

        async def remove_memory(connection: AsyncConnection) -> int:
            query = select(*COLUMNS).where(memories.c.owner_id == user_id).limit(1)
            row = (await connection.execute(query.with_for_update())).one_or_none()
            if row is None:
                return 0
            record = to_record(row)
            await self._stores.delete(connection, record)
            await count(connection, "memories", 1, record.size_bytes)
            return 1

        async def remove_facts(connection: AsyncConnection) -> int:
            jobs = await self._stores.queue.cancel_owner(connection, user_id)
            facts = await self._stores.facts.remove_some(connection, user_id, _FACTS_AT_ONCE)
            await count(connection, "facts", facts)
            return jobs + facts

        removed = await write(self._engine, remove_memory)
        removed = removed or await write(self._engine, remove_facts)
        if not removed:
            await remove_empty_owner(self._engine, user_id)
        return removed
