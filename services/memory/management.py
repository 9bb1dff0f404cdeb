"""What users see and do of their memories outside of conversations."""

from collections.abc import Awaitable, Callable

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1 import memory_pb2
from services.common.database import writing
from services.common.errors import GatewayError
from services.common.texts import MAX_NAME
from services.memory.archive.archive import Embedded
from services.memory.jobs.stores import Stores
from services.memory.locks.locks import Locks
from services.memory.storage.memory_records import Entity
from services.memory.transcript.windows import Windows
from services.memory.turns.context import to_proto

# Returns the vector of a user's question, None where no model makes one.
Embed = Callable[[str, str], Awaitable[Embedded | None]]


class Management:
    """Describes memories and forgets them; every method is for one user's own alone.

    Methods that take a `memory_id` raise `not_found` when the user has none of that name.
    """

    def __init__(self, engine: AsyncEngine, stores: Stores, locks: Locks, embed: Embed) -> None:
        self._engine = engine
        self._stores = stores
        self._locks = locks
        self._embed = embed

    async def page(
        self, owner_id: str, limit: int, page_token: str
    ) -> memory_pb2.ListMemoriesResponse:
        """Return memories, the one used last first."""
        found, token = await self._stores.repository.page(owner_id, limit, page_token)
        written = await self._locks.written([entity.id for entity in found])
        return memory_pb2.ListMemoriesResponse(
            memories=[_described(entity, is_written=entity.id in written) for entity in found],
            next_page_token=token,
        )

    async def describe(self, owner_id: str, memory_id: str) -> memory_pb2.Memory:
        """Describe one memory, its summary included."""
        entity = await self._find(owner_id, memory_id)
        is_written = bool(await self._locks.written([entity.id]))
        summary = await self._stores.summaries.current(entity.id)
        described = _described(entity, is_written=is_written)
        if not is_written and await self._stores.queue.waits(entity.id):
            described.state = memory_pb2.Memory.STATE_SUMMARISING
        described.summary = summary.text
        described.degraded = summary.degraded
        return described

    async def turns(
        self, owner_id: str, memory_id: str, limit: int, page_token: str
    ) -> memory_pb2.ListTurnsResponse:
        """Return turns of a memory, the newest first."""
        entity = await self._find(owner_id, memory_id)
        found, token = await self._stores.repository.turn_page(entity, limit, page_token)
        return memory_pb2.ListTurnsResponse(
            turns=[to_proto(turn) for turn in found], next_page_token=token
        )

    async def search(
        self, owner_id: str, memory_id: str, query: str, limit: int
    ) -> memory_pb2.SearchMemoryResponse:
        """Find archived turns."""
        entity = await self._find(owner_id, memory_id)
        found = await self._stores.archive.search(
            owner_id,
            entity.id,
            query,
            before_turn=entity.turns + 1,
            limit=limit,
            embedded=await self._embed(owner_id, query),
        )
        return memory_pb2.SearchMemoryResponse(
            snippets=[memory_pb2.Snippet(**snippet._asdict()) for snippet in found]
        )

    async def forget(self, owner_id: str, memory_id: str) -> None:
        """Forget a memory, once nobody writes to it.

        Raises:
            GatewayError: memory_busy, when somebody does for too long.
        """
        entity = await self._find(owner_id, memory_id)
        async with (
            self._locks.writing(entity) as lock,
            self._stores.repository.committing(lock) as (connection, current),
        ):
            await self._stores.forget(connection, current)

    async def profile(self, owner_id: str) -> memory_pb2.GetProfileResponse:
        """Return what is known about a user."""
        facts = await self._stores.facts.of(owner_id)
        ids = {source.entity_id for fact in facts for source in fact.sources}
        names = await self._stores.repository.names(owner_id, ids)
        return memory_pb2.GetProfileResponse(
            facts=[
                memory_pb2.Fact(
                    topic=fact.topic,
                    sub_topic=fact.sub_topic,
                    value=fact.value,
                    sources=[
                        memory_pb2.FactSource(memory_id=names[entity_id], turn=turn)
                        for entity_id, turn in fact.sources
                        if entity_id in names
                    ],
                    updated_at_ms=fact.updated_at_ms,
                )
                for fact in facts
            ]
        )

    async def forget_profile(self, owner_id: str) -> None:
        """Forget what is known about a user, and what was still to be looked through."""
        async with writing(self._engine) as connection:
            await self._stores.forget_profile(connection, owner_id)

    async def _find(self, owner_id: str, memory_id: str) -> Entity:
        # Memories of older rules have unprintable characters in their names.
        known = len(memory_id) <= MAX_NAME and "\0" not in memory_id
        entity = await self._stores.repository.find(owner_id, memory_id) if known else None
        if entity is None:
            raise GatewayError(
                errors_pb2.REASON_NOT_FOUND,
                "memory_id: you have no memory of that name; GET /beta/v1/memories lists yours",
                param="memory_id",
            )
        return entity


def _described(entity: Entity, *, is_written: bool) -> memory_pb2.Memory:
    view = Windows().view(entity.turns, entity.summarised)
    state = memory_pb2.Memory.STATE_WRITING if is_written else memory_pb2.Memory.STATE_IDLE
    return memory_pb2.Memory(
        memory_id=entity.memory_id,
        created_at_ms=entity.created_at_ms,
        updated_at_ms=entity.updated_at_ms,
        turns=entity.turns,
        summarised=entity.summarised,
        pending=len(view.pending),
        state=state,
    )
