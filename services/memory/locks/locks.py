"""Read and write locks on memories.

::

    async with locks.write_lock(record) as lock:
        ...                                        # for as long as it takes
        async with locks.committing(lock) as (connection, record):
            ...

One call at a time holds the write lock of a memory. Up to `LockLimits.max_readers` calls hold read
locks, independently of the write lock. Calls of either mode are served in order. `lock_queue`
stores the claims of all processes. This module manages the claims of one process and renews them
together. A waiting claim polls the database only if it waits for other processes; otherwise a claim
of this process wakes it.
"""

import asyncio
import logging
from bisect import insort
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.process.registry import ProcessRegistry
from services.common.storage.database import write, writing
from services.common.storage.leased_rows import LeaseRenewer, holder_prefix, wait_briefly
from services.memory.locks.claim_rows import (
    CLAIM,
    READ,
    WRITE,
    LockClaim,
    LockMode,
    QueueKey,
    add_claim,
    assert_claimed,
    give_up_claim,
    leave_memory,
    remove_claim,
)
from services.memory.locks.lock_queue import LockQueue
from services.memory.locks.opening import KnownMemory, Opening
from services.memory.storage.memory_records import (
    OWNED,
    MemoryRecord,
    busy,
    lock_lost_error,
    owned,
    to_record,
)

# Seconds between two polls of a queue.
_FIRST_POLL_S = 0.02
_LONGEST_POLL_S = 0.1
_POLL_GROWTH = 1.5
_TO_WRITE = LockMode(WRITE, 1)
_LOCK_RECORD = OWNED.with_for_update(key_share=True)

_T = TypeVar("_T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LockLimits:
    """Bounds on waiting for locks and holding them.

    Attributes:
        wait_s: seconds that a call waits for a lock.
        max_readers: read locks on one memory that are held at once.
        lease_s: seconds after which the lock of a process that died is free.
    """

    wait_s: float = 10
    max_readers: int = 5
    lease_s: float = 15


class MemoryLocks:
    """Read and write locks on memories for the calls of one process.

    Every method raises `unavailable` when the database does not answer.

    Args:
        engine: the database.
        clock: the clock.
        limits: bounds on waiting and holding.
        processes: the processes of this machine, if their deaths can be detected: the locks of a
            process are then free when it has died, otherwise once their leases expire.
        new_id: makes the ids of claims.

    Attributes:
        queue: the claims of all processes.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        limits: LockLimits | None = None,
        processes: ProcessRegistry | None = None,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._new_id = new_id
        self._limits = limits or LockLimits()
        self.queue = LockQueue(engine, clock or Clock(), self._limits.lease_s)
        self._renewer = LeaseRenewer(self.queue.renew, self._limits.lease_s)
        self._processes = processes
        self._process_name = processes.name if processes else self._new_id("")
        if processes:
            processes.on_death.append(self.queue.remove_of_process)
        # The claims of this process that are in the database, by queue, in the order of tickets.
        self._local_queues: dict[QueueKey, list[LockClaim]] = {}
        # The ids of all claims that are in use, including those that are still being inserted.
        self._open: set[str] = set()
        self._work: set[asyncio.Task[Any]] = set()

    def write_lock(self, record: MemoryRecord) -> AbstractAsyncContextManager[LockClaim]:
        """Hold the write lock of a memory.

        `record` may be outdated by the time the lock is held.

        Raises:
            GatewayError: memory_busy, when the lock is not free in time; conflict, when
                the memory is gone.
        """
        return self.opened(KnownMemory(record))

    def read_lock(self, record: MemoryRecord) -> AbstractAsyncContextManager[LockClaim]:
        """Hold one of the read locks of a memory.

        Raises:
            GatewayError: memory_busy, when none is free in time; conflict, when the memory is
                gone.
        """
        return self.opened(KnownMemory(record), LockMode(READ, self._limits.max_readers))

    @asynccontextmanager
    async def opened(
        self, opening: Opening, mode: LockMode = _TO_WRITE
    ) -> AsyncIterator[LockClaim]:
        """Hold a lock of a memory that is found in the transaction of its claim.

        Raises:
            GatewayError: memory_busy, when the lock is not free in time; as `Opening.make`.
        """
        claim_id = self._new_id(holder_prefix(CLAIM, self._process_name))
        self._open.add(claim_id)
        entering = self._start(self._enter(claim_id, mode, opening))
        claim: LockClaim | None = None
        try:
            claim = await asyncio.shield(entering)
            if claim.has_waited:
                await self._wait(claim)
            yield claim
        finally:
            if claim is None or not claim.is_removed:
                # Shielded: the claim is removed even if the caller is cancelled here.
                await asyncio.shield(self._start(self._leave(claim_id, entering, opening)))

    @asynccontextmanager
    async def committing(
        self, lock: LockClaim
    ) -> AsyncIterator[tuple[AsyncConnection, MemoryRecord]]:
        """Yield a transaction with exclusive write access to a memory, and the memory's record.

        Raises:
            GatewayError: conflict, when the lock was lost or the memory deleted.
        """
        async with writing(self._engine) as connection:
            record = await _lock_record(connection, lock)
            await assert_claimed(connection, lock)
            yield connection, record

    async def commit(
        self,
        lock: LockClaim,
        work: Callable[[AsyncConnection, MemoryRecord], Coroutine[Any, Any, _T]],
    ) -> _T:
        """Return the result of `work`, called in a transaction that also releases the lock.

        Args:
            lock: the lock, which is not held any more after the commit.
            work: called with a connection and the memory's record; it executes statements, and
                awaits nothing else.

        Raises:
            GatewayError: conflict, when the lock was lost or the memory deleted.
        """

        async def work_and_release(connection: AsyncConnection) -> _T:
            record = await _lock_record(connection, lock)
            await give_up_claim(connection, lock)
            return await work(connection, record)

        result = await write(self._engine, work_and_release)
        lock.is_removed = True
        self._forget(lock)
        return result

    async def close(self) -> None:
        """Wait for the work in progress; no lock may be requested any more."""
        while self._work:
            await asyncio.gather(*self._work, return_exceptions=True)
        await self._renewer.close()

    def _start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Run database work in a task of its own, since the caller may be cancelled."""
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def _enter(self, claim_id: str, mode: LockMode, opening: Opening) -> LockClaim:
        add = partial(
            add_claim,
            claim_id=claim_id,
            mode=mode,
            opening=opening,
            ends_at_ms=self.queue.ends_at_ms,
        )
        try:
            claim = await write(self._engine, add, is_lasting=False)
        except IntegrityError as error:
            # The memory was deleted between two statements.
            raise lock_lost_error() from error
        insort(self._local_queues.setdefault(claim.queue, []), claim, key=attrgetter("ticket"))
        self._renewer.add(claim.id, partial(self._lose, claim))
        return claim

    async def _wait(self, claim: LockClaim) -> None:
        try:
            async with asyncio.timeout(self._limits.wait_s):
                poll_s = _FIRST_POLL_S
                if claim.is_waiting and self._is_foremost(claim):
                    await asyncio.shield(self._start(self._remove_orphans(claim)))
                while claim.is_waiting:
                    await self._sleep(claim, poll_s)
                    poll_s = min(poll_s * _POLL_GROWTH, _LONGEST_POLL_S)
                    await asyncio.shield(self._start(self._poll(claim)))
        except TimeoutError:
            raise busy() from None

    async def _sleep(self, claim: LockClaim, poll_s: float) -> None:
        if self._is_foremost(claim):
            await wait_briefly(claim.woken, poll_s)
        else:
            # A claim of this process is ahead, and wakes this one when it is removed.
            await claim.woken.wait()
        claim.woken.clear()

    def _is_foremost(self, claim: LockClaim) -> bool:
        """Return whether only claims of other processes can keep a claim from the lock."""
        return claim in self._local_queues.get(claim.queue, [])[: claim.queue.mode.holders]

    async def _remove_orphans(self, claim: LockClaim) -> None:
        """Remove ended claims of this process that are still in the database ahead of a claim.

        They are left when the database did not answer their removal, or was killed and lost its
        last changes.
        """
        await self.queue.remove_orphans(claim.queue, claim.ticket, self._process_name, self._open)

    async def _poll(self, claim: LockClaim) -> None:
        if self._processes:
            await self._processes.reap_dead()
        ahead = await self.queue.count_ahead(claim.queue, claim.ticket)
        if ahead is None:
            raise lock_lost_error()
        claim.ahead = ahead

    async def _leave(
        self, claim_id: str, entering: asyncio.Task[LockClaim], opening: Opening
    ) -> None:
        await asyncio.wait([entering])
        claim = None if entering.exception() else entering.result()
        try:
            # Without an answer of the database it may have been added.
            leave = partial(remove_claim, claim_id=claim_id)
            if claim is not None:
                leave = partial(leave_memory, claim=claim, opening=opening)
            await write(self._engine, leave, is_lasting=False)
        except GatewayError as error:
            # It is not renewed, so it expires, if it is not removed before.
            log.warning(
                "the lock of a memory could not be released and will expire",
                extra={"error": error.message},
            )
        finally:
            self._open.discard(claim_id)
            if claim is not None:
                self._forget(claim)

    def _lose(self, claim: LockClaim) -> None:
        claim.lost.set()
        claim.woken.set()
        self._forget(claim)

    def _forget(self, claim: LockClaim) -> None:
        """Stop renewing a claim, and wake those of its local queue that may hold the lock now."""
        self._open.discard(claim.id)
        self._renewer.discard(claim.id)
        local_queue = self._local_queues.get(claim.queue, [])
        if claim not in local_queue:
            return
        local_queue.remove(claim)
        for following in local_queue[: claim.queue.mode.holders]:
            following.woken.set()
        if not local_queue:
            del self._local_queues[claim.queue]


async def _lock_record(connection: AsyncConnection, lock: LockClaim) -> MemoryRecord:
    """Return the record of a memory, whose row is locked until the transaction ends.

    Raises:
        GatewayError: conflict, when the memory was deleted.
    """
    owner = owned(lock.record.id, lock.record.owner_id)
    row = (await connection.execute(_LOCK_RECORD, owner)).one_or_none()
    if row is None:
        raise lock_lost_error()
    return to_record(row)
