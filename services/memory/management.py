"""Management of memories outside of conversations: list, search, delete."""

from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1 import memory_pb2
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid
from services.common.process.byte_budget import ByteBudget, Charge
from services.common.storage.database import writing
from services.common.text.texts import MAX_NAME
from services.memory.archive.archive import QuestionVector
from services.memory.jobs.stores import Stores
from services.memory.jobs.windows import Windows
from services.memory.locks.locks import MemoryLocks
from services.memory.profile.facts import MAX_VALUE, Fact, normalize_value
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.transcript_rows import TURN_COST
from services.memory.turns.context import turn_to_proto

# Returns the vector of a user's question; None when no model returns one.
EmbedQuestion = Callable[[str, str], Awaitable[QuestionVector | None]]


class MemoryManagement:
    """Reads and deletes the memories of one user at a time.

    Methods that take a `memory_id` raise `not_found` when the user has no such memory.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        stores: Stores,
        locks: MemoryLocks,
        embed: EmbedQuestion,
        budget: ByteBudget,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._budget = budget
        self._engine = engine
        self._stores = stores
        self._locks = locks
        self._embed = embed

    async def page(
        self, owner_id: str, page_size: int, page_token: str
    ) -> memory_pb2.ListMemoriesResponse:
        """Return memories, the most recently used first."""
        records, token = await self._stores.repository.page(owner_id, page_size, page_token)
        written = await self._locks.queue.being_written([record.id for record in records])
        return memory_pb2.ListMemoriesResponse(
            memories=[_to_proto(record, is_written=record.id in written) for record in records],
            next_page_token=token,
        )

    async def get(self, owner_id: str, memory_id: str) -> memory_pb2.Memory:
        """Return one memory with its summary."""
        record = await self._find(owner_id, memory_id)
        is_written = bool(await self._locks.queue.being_written([record.id]))
        summary = await self._stores.summaries.current(record.id)
        memory = _to_proto(record, is_written=is_written)
        if not is_written and await self._stores.queue.has_summaries(record.id):
            memory.state = memory_pb2.Memory.STATE_SUMMARISING
        memory.summary = summary.text
        memory.degraded = summary.degraded
        return memory

    async def turns(
        self, owner_id: str, memory_id: str, page_size: int, page_token: str
    ) -> memory_pb2.ListTurnsResponse:
        """Return turns of a memory, the newest first."""
        record = await self._find(owner_id, memory_id)
        with Charge(self._budget, owner_id) as charge:
            turns, token = await self._stores.repository.turn_page(
                record, page_size, page_token, charge.at(TURN_COST)
            )
            return memory_pb2.ListTurnsResponse(
                turns=[turn_to_proto(turn) for turn in turns], next_page_token=token
            )

    async def search(
        self, owner_id: str, memory_id: str, query: str, limit: int
    ) -> memory_pb2.SearchMemoryResponse:
        """Return archived turns that match a query, the best first."""
        record = await self._find(owner_id, memory_id)
        snippets = await self._stores.archive.search(
            owner_id,
            record.id,
            query,
            before_turn=record.turns + 1,
            limit=limit,
            vector=await self._embed(owner_id, query),
        )
        return memory_pb2.SearchMemoryResponse(
            snippets=[memory_pb2.Snippet(**snippet._asdict()) for snippet in snippets]
        )

    async def delete(self, owner_id: str, memory_id: str) -> None:
        """Delete a memory under its write lock.

        Raises:
            GatewayError: memory_busy, when the lock is not free in time.
        """
        record = await self._find(owner_id, memory_id)
        async with (
            self._locks.write_lock(record) as lock,
            self._locks.committing(lock) as (connection, current),
        ):
            await self._stores.delete(connection, current)

    async def profile(self, owner_id: str) -> memory_pb2.GetProfileResponse:
        """Return the facts about a user."""
        facts = await self._stores.facts.of(owner_id)
        return memory_pb2.GetProfileResponse(facts=await self._facts_to_proto(owner_id, facts))

    async def correct_fact(self, owner_id: str, fact_id: str, value: str) -> memory_pb2.Fact:
        """Change the value of a fact about a user; return the fact.

        Raises:
            GatewayError: not_found; invalid_request, when the value is empty or too long.
        """
        if len(value) > MAX_VALUE or not normalize_value(value):
            raise invalid("value", f"value: must be 1 to {MAX_VALUE} characters")
        async with writing(self._engine) as connection:
            value = normalize_value(value)
            current_id = await self._stores.facts.correct(
                connection, owner_id, fact_id, value, self._clock.now_ms()
            )
        facts = [one for one in await self._stores.facts.of(owner_id) if one.id == current_id]
        if not facts:
            raise _no_fact()
        return (await self._facts_to_proto(owner_id, facts))[0]

    async def delete_fact(self, owner_id: str, fact_id: str) -> None:
        """Delete a fact about a user, with those that it superseded.

        Raises:
            GatewayError: not_found.
        """
        async with writing(self._engine) as connection:
            is_removed = await self._stores.facts.remove(connection, owner_id, fact_id)
        if not is_removed:
            raise _no_fact()

    async def _facts_to_proto(
        self, owner_id: str, facts: Sequence[Fact]
    ) -> Sequence[memory_pb2.Fact]:
        ids = {source.entity_id for fact in facts for source in fact.sources}
        names = await self._stores.repository.names(owner_id, ids)
        return [
            memory_pb2.Fact(
                id=fact.id,
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

    async def delete_profile(self, owner_id: str) -> None:
        """Delete the facts about a user, and the jobs that would extract more."""
        async with writing(self._engine) as connection:
            await self._stores.delete_profile(connection, owner_id)

    async def _find(self, owner_id: str, memory_id: str) -> MemoryRecord:
        # Memories made under older rules may have unprintable characters in their names.
        is_possible = len(memory_id) <= MAX_NAME and "\0" not in memory_id
        record = await self._stores.repository.find(owner_id, memory_id) if is_possible else None
        if record is None:
            raise GatewayError(
                errors_pb2.REASON_NOT_FOUND,
                "memory_id: no such memory; GET /v1/memories lists yours",
                param="memory_id",
            )
        return record


def _no_fact() -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND,
        "fact_id: no such fact; GET /v1/memory/profile lists yours",
        param="fact_id",
    )


def _to_proto(record: MemoryRecord, *, is_written: bool) -> memory_pb2.Memory:
    view = Windows().view(record.turns, record.summarised)
    state = memory_pb2.Memory.STATE_WRITING if is_written else memory_pb2.Memory.STATE_IDLE
    return memory_pb2.Memory(
        memory_id=record.memory_id,
        created_at_ms=record.created_at_ms,
        updated_at_ms=record.updated_at_ms,
        turns=record.turns,
        summarised=record.summarised,
        pending=len(view.pending),
        state=state,
    )
