"""Takes a turn: whoever holds a memory reads it, and adds the turn once it is whole."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Message
from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.memory_pb2 import OpenTurn, TurnContext
from services.common.authentication import Caller
from services.common.disk import DiskReserve
from services.common.errors import GatewayError, invalid
from services.common.ids import Source
from services.common.plans import limit_of, plan_name
from services.common.settings import Memory
from services.memory.jobs.job_runner import JobRunner
from services.memory.jobs.stores import Stores
from services.memory.locks.locks import MemoryLocks, WriteLock
from services.memory.metrics import MemoryMetrics
from services.memory.storage.memory_records import MemoryRecord, storage_exceeded, taken_over
from services.memory.transcript.messages import normalize
from services.memory.transcript.offload import (
    has_large_messages,
    has_many_messages,
    offload_if,
    turns_have_many_messages,
)
from services.memory.transcript.turns import complete_turns, user_text
from services.memory.transcript.windows import Windows
from services.memory.turns.context import ContextReader
from services.memory.turns.reconciliation import (
    MemoryRewoundError,
    Reconciliation,
    reconcile,
    start_transcript,
)


@dataclass(frozen=True, slots=True)
class HeldTurn:
    """A turn that is being taken.

    Attributes:
        context: what a model is to see.
    """

    context: TurnContext
    _taking: "TurnService"
    _opening: OpenTurn
    _owner_id: str
    _meeting: Reconciliation
    _lock: WriteLock | None = None
    _storage: int = 0

    async def commit(self, answer: Message) -> int:
        """Add the turn with its answer; return its number, 0 outside of any memory.

        Raises:
            GatewayError: conflict, when the memory was taken over or deleted; invalid, when
                it is only read; memory_storage_exceeded; storage_full.
        """
        if self._opening.mode == OpenTurn.MODE_READ_ONLY:
            raise invalid("commit", "commit: the turn was opened to read only")
        if self._lock is None:
            await self._taking.note(self._owner_id, self._meeting)
            return 0
        return await self._taking.add(
            self._lock, self._opening, self._meeting, answer, self._storage
        )


class TurnService:
    """Takes turns.

    Args:
        stores: what is kept.
        locks: who may read and write.
        contexts: what a model is to see.
        jobs: what is done in the background.
        settings: bounds on waiting, and quotas.
        source: ids and clocks.
        metrics: what is counted.
        reserve: free space without which nothing is remembered.
    """

    def __init__(
        self,
        stores: Stores,
        locks: MemoryLocks,
        contexts: ContextReader,
        jobs: JobRunner,
        settings: Memory,
        source: Source,
        metrics: MemoryMetrics,
        reserve: DiskReserve,
    ) -> None:
        self._stores = stores
        self._locks = locks
        self._contexts = contexts
        self._jobs = jobs
        self._settings = settings
        self._source = source
        self._metrics = metrics
        self._reserve = reserve

    @asynccontextmanager
    async def take(self, caller: Caller, opening: OpenTurn) -> AsyncIterator[HeldTurn]:
        """Take a turn, for as long as the block lasts.

        Raises:
            GatewayError: memory_busy, memory_quota_exceeded, memory_storage_exceeded,
                memory_not_synchronized, storage_full.
        """
        sent = await offload_if(has_large_messages(opening.messages), normalize, opening.messages)
        if not sent:
            raise invalid("messages", "messages: one with something in it is needed")
        owner_id = caller.user_id
        if not opening.memory_id:
            meeting = await offload_if(
                has_many_messages(sent), start_transcript, sent, self._now_ms()
            )
            yield await self._taken(owner_id, opening, None, meeting)
        elif opening.mode == OpenTurn.MODE_READ_ONLY:
            async with self._reading(owner_id, opening, sent) as taken:
                yield taken
        else:
            self._reserve.check()
            plan = plan_name(caller.plan)
            async with self._writing(owner_id, plan, opening, sent) as taken:
                yield taken

    async def add(
        self,
        lock: WriteLock,
        opening: OpenTurn,
        meeting: Reconciliation,
        answer: Message,
        storage: int,
    ) -> int:
        """Add the turns of a meeting with the answer of the last; return that one's number.

        Args:
            lock: on the memory.
            opening: what the request said of it.
            meeting: how the memory goes on.
            answer: of the model.
            storage: bytes that the owner's memories may have in all.
        """
        self._reserve.check()
        stores = self._stores
        turns = await offload_if(
            turns_have_many_messages(meeting.turns), complete_turns, meeting.turns, answer
        )
        async with stores.repository.committing(lock) as (connection, record):
            if meeting.rewinds:
                await stores.rewind(connection, record, meeting.keep)
            if await stores.repository.append(connection, record, turns) > storage:
                raise storage_exceeded(storage)
            await self._jobs.put_summary(connection, record, _windows(opening))
            if opening.personal_memory:
                for turn in meeting.spoken:
                    text = user_text(turn.messages)
                    await self._jobs.put_facts(
                        connection, record.owner_id, text, record.id, turn.number
                    )
        self._jobs.wake()
        return turns[-1].number

    async def note(self, owner_id: str, meeting: Reconciliation) -> None:
        """Look in what the user says, outside of any memory, for facts."""
        await self._jobs.put_facts_alone(owner_id, user_text(meeting.present.messages))
        self._jobs.wake()

    @asynccontextmanager
    async def _reading(
        self, owner_id: str, opening: OpenTurn, sent: Sequence[Message]
    ) -> AsyncIterator[HeldTurn]:
        record = await self._stores.repository.find(owner_id, opening.memory_id)
        if record is None:
            meeting = await offload_if(
                has_many_messages(sent), start_transcript, sent, self._now_ms()
            )
            yield await self._taken(owner_id, opening, None, meeting)
            return
        began = self._source.monotonic()
        async with self._locks.read_lock(record):
            self._metrics.lock_wait_s.observe(self._source.monotonic() - began)
            while True:
                record = await self._current(record)
                try:
                    meeting = await reconcile(self._stores.repository, record, sent, self._now_ms())
                    break
                except MemoryRewoundError:
                    continue  # readers do not wait for the writer
            yield await self._taken(owner_id, opening, record, meeting)

    @asynccontextmanager
    async def _writing(
        self, owner_id: str, plan: str, opening: OpenTurn, sent: Sequence[Message]
    ) -> AsyncIterator[HeldTurn]:
        repository = self._stores.repository
        quota = limit_of(self._settings.quota, plan)
        storage = limit_of(self._settings.storage, plan)
        reserved = await repository.reserve(owner_id, opening.memory_id, quota)
        try:
            began = self._source.monotonic()
            async with self._locks.write_lock(reserved) as lock:
                self._metrics.lock_wait_s.observe(self._source.monotonic() - began)
                record = await self._synchronised(reserved, _windows(opening))
                meeting = await reconcile(repository, record, sent, self._now_ms())
                # Told before a model is asked; the commit is what holds the quota.
                new_bytes = await offload_if(
                    turns_have_many_messages(meeting.turns), meeting.new_bytes
                )
                if await repository.stored_bytes(owner_id) + 2 * new_bytes > storage:
                    raise storage_exceeded(storage)
                yield await self._taken(owner_id, opening, record, meeting, lock, storage)
        finally:
            # A caller who is cancelled here still gives back what was reserved.
            await asyncio.shield(asyncio.ensure_future(repository.release(reserved)))

    async def _synchronised(self, record: MemoryRecord, windows: Windows) -> MemoryRecord:
        """Return a memory as it is once no batch of older turns waits to be summarised.

        Raises:
            GatewayError: memory_not_synchronized, when that cannot be done now.
        """
        record = await self._current(record)
        if windows.view(record.turns, record.summarised).due is None:
            return record
        try:
            await self._jobs.summarise_now(record, windows, self._settings.sync_wait_s)
            record = await self._current(record)
        except GatewayError as error:
            if error.reason != errors_pb2.REASON_UNAVAILABLE:
                raise
            raise _not_synchronized() from error
        if windows.view(record.turns, record.summarised).due is not None:
            raise _not_synchronized()
        return record

    async def _current(self, record: MemoryRecord) -> MemoryRecord:
        current = await self._stores.repository.current(record)
        if current is None:
            raise taken_over()
        return current

    async def _taken(
        self,
        owner_id: str,
        opening: OpenTurn,
        record: MemoryRecord | None,
        meeting: Reconciliation,
        lock: WriteLock | None = None,
        storage: int = 0,
    ) -> HeldTurn:
        context = await self._contexts.of(
            owner_id, record, meeting, _windows(opening), with_profile=opening.personal_memory
        )
        return HeldTurn(context, self, opening, owner_id, meeting, lock, storage)

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
