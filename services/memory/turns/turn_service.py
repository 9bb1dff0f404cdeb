"""Opens turns under a lock on their memory, and commits them with the model's answer."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.accounts.v1.accounts_pb2 import Plan
from gateway.conversation.v1.conversation_pb2 import Message
from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.memory_pb2 import BeginTurn, TurnContext
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid
from services.common.grpc.authentication import Caller
from services.common.plans import limit_of, plan_name
from services.common.process.byte_budget import Admit, ByteBudget, Charge, request_charge
from services.common.process.offload import offload_if
from services.common.settings import Memory
from services.common.storage.disk import DiskReserve
from services.memory.jobs.job_runner import JobRunner
from services.memory.jobs.stores import Stores
from services.memory.jobs.windows import (
    DEFAULT_HISTORY_WINDOW,
    DEFAULT_SUMMARY_WINDOW,
    Windows,
)
from services.memory.locks.claim_rows import LockClaim
from services.memory.locks.locks import MemoryLocks
from services.memory.metrics import MemoryMetrics
from services.memory.storage.memory_records import MemoryRecord, check_storage, lock_lost_error
from services.memory.storage.messages import has_large_messages, has_many_messages, normalize
from services.memory.storage.stored_turns import (
    StoredTurn,
    complete_turns,
    have_many_messages,
    user_text,
)
from services.memory.storage.transcript_rows import TURN_COST
from services.memory.turns.context import ContextReader
from services.memory.turns.opened_memory import OpenedMemory
from services.memory.turns.reconciliation import (
    MemoryRewoundError,
    Reconciliation,
    continue_transcript,
    reconcile,
)


@dataclass(frozen=True, slots=True)
class TurnInProgress:
    """A turn that was begun and is not committed yet.

    Attributes:
        context: the context for the model.
        commit: commits the turn with the model's answer, and returns the turn's number, or 0
            outside of any memory. It raises GatewayError: conflict, when the lock was lost or the
            memory deleted; invalid, when the turn is read-only; memory_storage_exceeded;
            storage_full.
    """

    context: TurnContext
    commit: Callable[[Message], Awaitable[int]]


class _Limits(NamedTuple):
    """How many memories a user of a plan may have, and how large they may be in total."""

    memories: int
    size_bytes: int


class TurnService:
    """Opens and commits turns.

    Args:
        stores: the stores of the database.
        locks: locks on memories.
        contexts: reads the contexts of turns.
        jobs: background jobs.
        settings: bounds on waiting, and quotas.
        clock: the clock.
        metrics: the metrics of the service.
        reserve: the free disk space that commits require.
        budget: limits the bytes that the process holds.
    """

    def __init__(
        self,
        stores: Stores,
        locks: MemoryLocks,
        contexts: ContextReader,
        jobs: JobRunner,
        settings: Memory,
        clock: Clock,
        metrics: MemoryMetrics,
        reserve: DiskReserve,
        budget: ByteBudget,
    ) -> None:
        self._budget = budget
        self._stores = stores
        self._locks = locks
        self._contexts = contexts
        self._jobs = jobs
        self._settings = settings
        self._limits = {
            plan: _Limits(
                limit_of(settings.quota, plan_name(plan)),
                limit_of(settings.storage, plan_name(plan)),
            )
            for plan in Plan.values()
        }
        self._clock = clock
        self._metrics = metrics
        self._reserve = reserve

    @asynccontextmanager
    async def begin(self, caller: Caller, begin: BeginTurn) -> AsyncIterator[TurnInProgress]:
        """Begin a turn, and hold its lock until the block is left.

        The stored turns that are read are charged to the caller until then.

        Raises:
            GatewayError: memory_busy, memory_quota_exceeded, memory_storage_exceeded,
                memory_not_synchronized, storage_full; as `Charge.acquire`.
        """
        sent = await offload_if(has_large_messages(begin.messages), normalize, begin.messages)
        if not sent:
            raise invalid("messages", "messages: at least one message with content is required")
        owner_id = caller.user_id
        # 0 where the caller leaves it to the gateway.
        windows = Windows(
            begin.history_window or DEFAULT_HISTORY_WINDOW,
            begin.summary_window or DEFAULT_SUMMARY_WINDOW,
        )
        if not begin.memory_id:
            yield await self._without_memory(owner_id, begin, sent, windows)
            return
        reads_only = begin.mode == BeginTurn.MODE_READ_ONLY
        if not reads_only:
            self._reserve.check()
        with Charge(self._budget, owner_id, request_charge.get()) as charge:
            if reads_only:
                opening = self._reading(charge, begin, sent, windows)
            else:
                opening = self._writing(charge, self._limits[caller.plan], begin, sent, windows)
            async with opening as turn:
                yield turn

    @asynccontextmanager
    async def _reading(
        self, charge: Charge, begin: BeginTurn, sent: Sequence[Message], windows: Windows
    ) -> AsyncIterator[TurnInProgress]:
        owner_id = charge.user_id
        record = await self._stores.repository.find(owner_id, begin.memory_id)
        if record is None:
            yield await self._without_memory(owner_id, begin, sent, windows)
            return
        began = self._clock.monotonic()
        async with self._locks.read_lock(record):
            self._metrics.lock_wait_s.observe(self._clock.monotonic() - began)
            while True:
                record = await self._current(record)
                admit = None if record.is_small else charge.at(TURN_COST)
                newest = await self._newest(record, windows, admit)
                try:
                    reconciliation = await reconcile(
                        self._stores.repository, record, newest, sent, self._clock.now_ms(), admit
                    )
                    break
                except MemoryRewoundError:
                    continue  # readers do not wait for the writer
            context = await self._contexts.read(
                *(owner_id, record, reconciliation, windows),
                with_profile=begin.personal_memory,
                newest=newest,
                admit=admit,
            )
            yield TurnInProgress(context, _refuse_commit)

    @asynccontextmanager
    async def _writing(
        self,
        charge: Charge,
        limits: _Limits,
        begin: BeginTurn,
        sent: Sequence[Message],
        windows: Windows,
    ) -> AsyncIterator[TurnInProgress]:
        owner_id = charge.user_id
        repository = self._stores.repository
        memory = OpenedMemory(self._stores, owner_id, begin.memory_id, limits.memories, windows)
        began = self._clock.monotonic()
        async with self._locks.opened(memory) as lock:
            self._metrics.lock_wait_s.observe(self._clock.monotonic() - began)
            record = await self._current(lock.record) if lock.has_waited else lock.record
            is_due = windows.view(record.turns, record.summarised).due is not None
            if is_due:
                record = await self._synchronised(record, windows)
            if is_due or lock.has_waited:
                # What was read with the lock is outdated, or was not read.
                memory.newest = memory.summary = None
                memory.owner_bytes = await repository.stored_bytes(owner_id)
            # Measuring turns takes a query: those of a small memory are not charged.
            admit = None if record.is_small else charge.at(TURN_COST)
            newest = memory.newest
            if newest is None:
                newest = await self._newest(record, windows, admit)
            reconciliation = await reconcile(
                repository, record, newest, sent, self._clock.now_ms(), admit
            )
            # An early check, before a model is called; the binding one is at the commit.
            check_storage(memory.owner_bytes + reconciliation.new_bytes, limits.size_bytes)
            context = await self._contexts.read(
                *(owner_id, record, reconciliation, windows),
                with_profile=begin.personal_memory,
                newest=newest,
                admit=admit,
                summary=memory.summary,
            )
            yield TurnInProgress(
                context, partial(self._append, lock, begin, reconciliation, windows, limits)
            )

    async def _synchronised(self, record: MemoryRecord, windows: Windows) -> MemoryRecord:
        """Return a memory's record once the batch of older turns that is due is summarised.

        Raises:
            GatewayError: memory_not_synchronized, when it cannot be summarised now.
        """
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
            raise lock_lost_error()
        return current

    async def _newest(
        self, record: MemoryRecord, windows: Windows, admit: Admit | None
    ) -> Sequence[StoredTurn]:
        """Return the last turn of a memory, and those that are shown with it or its next one."""
        if not record.turns:
            return []
        first = windows.first_needed(record.turns, record.summarised)
        return await self._stores.repository.turns(record.id, first, record.turns, admit)

    async def _without_memory(
        self, owner_id: str, begin: BeginTurn, sent: Sequence[Message], windows: Windows
    ) -> TurnInProgress:
        now_ms = self._clock.now_ms()
        reconciliation = await offload_if(
            has_many_messages(sent), continue_transcript, sent, now_ms
        )
        context = await self._contexts.read(
            owner_id, None, reconciliation, windows, with_profile=begin.personal_memory
        )
        if begin.mode == BeginTurn.MODE_READ_ONLY:
            return TurnInProgress(context, _refuse_commit)
        return TurnInProgress(context, partial(self._extract_facts, owner_id, reconciliation))

    async def _append(
        self,
        lock: LockClaim,
        begin: BeginTurn,
        reconciliation: Reconciliation,
        windows: Windows,
        limits: _Limits,
        answer: Message,
    ) -> int:
        """Append the turns of a request and the answer, and release the memory's lock.

        Return the number of the last turn.
        """
        self._reserve.check()
        stores = self._stores
        turns = reconciliation.turns
        turns = await offload_if(have_many_messages(turns), complete_turns, turns, answer)

        async def append(connection: AsyncConnection, record: MemoryRecord) -> bool:
            """Append the turns; return whether there are jobs to do for them."""
            if reconciliation.rewinds:
                await stores.rewind(connection, record, reconciliation.keep)
            size = await stores.repository.append(connection, record, turns)
            check_storage(size, limits.size_bytes)
            has_jobs = await self._jobs.put_summary(connection, record, windows)
            if begin.personal_memory:
                for turn in reconciliation.turns_with_new_text:
                    text = user_text(turn.messages)
                    has_jobs |= await self._jobs.put_facts(
                        connection, record.owner_id, text, record.id, turn.number
                    )
            return has_jobs

        if await self._locks.commit(lock, append):
            self._jobs.wake()
        return turns[-1].number

    async def _extract_facts(
        self, owner_id: str, reconciliation: Reconciliation, _answer: Message
    ) -> int:
        """Queue the extraction of facts from the user's text outside of any memory."""
        text = user_text(reconciliation.turns[-1].messages)
        await self._jobs.put_facts_alone(owner_id, text)
        self._jobs.wake()
        return 0


async def _refuse_commit(_answer: Message) -> int:
    raise invalid("commit", "commit: the turn was opened read-only")


def _not_synchronized() -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_MEMORY_NOT_SYNCHRONIZED,
        "memory_id: older turns of this memory could not be archived yet; try again",
        param="memory_id",
    )
