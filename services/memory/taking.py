"""Takes a turn: whoever holds a memory reads it, and adds the turn once it is whole."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Message
from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.memory_pb2 import OpenTurn, TurnContext
from services.common.authentication import Caller
from services.common.errors import GatewayError, invalid
from services.common.ids import Source
from services.common.settings import Memory
from services.memory.context import Contexts
from services.memory.entities import Entity, taken_over
from services.memory.jobs import Jobs
from services.memory.locks import Locks, WriteLock
from services.memory.meeting import Meeting, MovedError, apart, begin, meet
from services.memory.messages import normalised
from services.memory.metrics import Metrics
from services.memory.quota import quota_of
from services.memory.stores import Stores
from services.memory.turns import asked, committed
from services.memory.windows import Windows


@dataclass(frozen=True, slots=True)
class Taken:
    """A turn that is being taken.

    Attributes:
        context: what a model is to see.
    """

    context: TurnContext
    _taking: "Taking"
    _opening: OpenTurn
    _owner_id: str
    _meeting: Meeting
    _lock: WriteLock | None = None

    async def commit(self, answer: Message) -> int:
        """Add the turn with its answer; give its number, 0 outside of any memory.

        Raises:
            GatewayError: conflict, when the memory was taken over or deleted; invalid, when
                it is only read.
        """
        if self._opening.mode == OpenTurn.MODE_READ_ONLY:
            raise invalid("commit", "commit: the turn was opened to read only")
        if self._lock is None:
            await self._taking.note(self._owner_id, self._meeting)
            return 0
        return await self._taking.add(self._lock, self._opening, self._meeting, answer)


class Taking:
    """Takes turns.

    Args:
        stores: what is kept.
        locks: who may read and write.
        contexts: what a model is to see.
        jobs: what is done in the background.
        settings: bounds on waiting, and quotas.
        source: ids and clocks.
        metrics: what is counted.
    """

    def __init__(
        self,
        stores: Stores,
        locks: Locks,
        contexts: Contexts,
        jobs: Jobs,
        settings: Memory,
        source: Source,
        metrics: Metrics,
    ) -> None:
        self._stores = stores
        self._locks = locks
        self._contexts = contexts
        self._jobs = jobs
        self._settings = settings
        self._source = source
        self._metrics = metrics

    @asynccontextmanager
    async def take(self, caller: Caller, opening: OpenTurn) -> AsyncIterator[Taken]:
        """Take a turn, for as long as the block lasts.

        Raises:
            GatewayError: memory_busy, memory_quota_exceeded, memory_not_synchronized.
        """
        sent = await apart(normalised, opening.messages)
        if not sent:
            raise invalid("messages", "messages: one with something in it is needed")
        owner_id = caller.user_id
        if not opening.memory_id:
            yield await self._taken(owner_id, opening, None, begin(sent, self._now_ms()))
        elif opening.mode == OpenTurn.MODE_READ_ONLY:
            async with self._reading(owner_id, opening, sent) as taken:
                yield taken
        else:
            quota = quota_of(caller.plan, self._settings.quota)
            async with self._writing(owner_id, opening, sent, quota) as taken:
                yield taken

    async def add(
        self, lock: WriteLock, opening: OpenTurn, meeting: Meeting, answer: Message
    ) -> int:
        """Add the turns of a meeting with the answer of the last; give that one's number."""
        stores = self._stores
        turns = committed(meeting.turns, answer)
        async with stores.repository.committing(lock) as (connection, entity):
            if meeting.rewinds:
                await stores.rewind(connection, entity, meeting.keep)
            await stores.repository.append(connection, entity, turns)
            await self._jobs.put_summary(connection, entity, _windows(opening))
            if opening.personal_memory:
                for turn in meeting.spoken:
                    text = asked(turn.messages)
                    await self._jobs.put_facts(
                        connection, entity.owner_id, text, entity.id, turn.number
                    )
        self._jobs.wake()
        return turns[-1].number

    async def note(self, owner_id: str, meeting: Meeting) -> None:
        """Look in what the user says, outside of any memory, for facts."""
        await self._jobs.put_facts_alone(owner_id, asked(meeting.present.messages))
        self._jobs.wake()

    @asynccontextmanager
    async def _reading(
        self, owner_id: str, opening: OpenTurn, sent: Sequence[Message]
    ) -> AsyncIterator[Taken]:
        entity = await self._stores.repository.find(owner_id, opening.memory_id)
        if entity is None:
            yield await self._taken(owner_id, opening, None, begin(sent, self._now_ms()))
            return
        began = self._source.monotonic()
        async with self._locks.reading(entity):
            self._metrics.lock_wait_s.observe(self._source.monotonic() - began)
            while True:
                entity = await self._current(entity)
                try:
                    meeting = await meet(self._stores.repository, entity, sent, self._now_ms())
                    break
                except MovedError:
                    continue  # readers do not wait for the writer
            yield await self._taken(owner_id, opening, entity, meeting)

    @asynccontextmanager
    async def _writing(
        self, owner_id: str, opening: OpenTurn, sent: Sequence[Message], quota: int
    ) -> AsyncIterator[Taken]:
        repository = self._stores.repository
        reserved = await repository.reserve(owner_id, opening.memory_id, quota)
        try:
            began = self._source.monotonic()
            async with self._locks.writing(reserved) as lock:
                self._metrics.lock_wait_s.observe(self._source.monotonic() - began)
                entity = await self._synchronised(reserved, _windows(opening))
                meeting = await meet(repository, entity, sent, self._now_ms())
                yield await self._taken(owner_id, opening, entity, meeting, lock)
        finally:
            # A caller who is cancelled here still gives back what was reserved.
            await asyncio.shield(asyncio.ensure_future(repository.release(reserved)))

    async def _synchronised(self, entity: Entity, windows: Windows) -> Entity:
        """Give a memory as it is once no batch of older turns waits to be summarised.

        Raises:
            GatewayError: memory_not_synchronized, when that cannot be done now.
        """
        entity = await self._current(entity)
        if windows.view(entity.turns, entity.summarised).due is None:
            return entity
        try:
            await self._jobs.summarise_now(entity, windows, self._settings.sync_wait_s)
            entity = await self._current(entity)
        except GatewayError as error:
            if error.reason != errors_pb2.REASON_UNAVAILABLE:
                raise
            raise _not_synchronized() from error
        if windows.view(entity.turns, entity.summarised).due is not None:
            raise _not_synchronized()
        return entity

    async def _current(self, entity: Entity) -> Entity:
        current = await self._stores.repository.current(entity)
        if current is None:
            raise taken_over()
        return current

    async def _taken(
        self,
        owner_id: str,
        opening: OpenTurn,
        entity: Entity | None,
        meeting: Meeting,
        lock: WriteLock | None = None,
    ) -> Taken:
        context = await self._contexts.of(
            owner_id, entity, meeting, _windows(opening), with_profile=opening.personal_memory
        )
        return Taken(context, self, opening, owner_id, meeting, lock)

    def _now_ms(self) -> int:
        return int(self._source.now() * 1000)


def _windows(opening: OpenTurn) -> Windows:
    windows = Windows()
    return Windows(
        opening.history_window if opening.HasField("history_window") else windows.history,
        opening.summary_window if opening.HasField("summary_window") else windows.summary,
    )


def _not_synchronized() -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_MEMORY_NOT_SYNCHRONIZED,
        "memory_id: older turns of this memory could not be archived yet; try again",
        param="memory_id",
    )
