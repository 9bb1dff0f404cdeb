"""Locks on memories: one who writes, some who read, each waiting in order for their own kind.

::

    async with locks.write_lock(record) as lock:
        ...                                        # for as long as it takes
        async with repository.committing(lock) as (connection, record):
            ...

`claims` says who holds what across processes. Here is what one process adds: it renews
its claims together, and of those who wait in it only the foremost look at the database,
and only while whoever they wait for is in another process.
"""

import asyncio
import logging
from bisect import insort
from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.errors import GatewayError
from services.common.ids import Source
from services.common.instances import Instances
from services.memory.locks.lock_queue import READ, WRITE, LockQueue, QueueKey, claim_id_prefix
from services.memory.storage.memory_records import MemoryRecord, busy, taken_over

# Of a lease, the part after which it is renewed: several renewals may fail.
_RENEWED_AFTER = 0.2
# Seconds between two looks at who else holds a memory.
_FIRST_LOOK_S = 0.02
_LAST_LOOK_S = 0.1
_LOOKS_GROW = 1.5

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LockLimits:
    """How long is waited for a lock, and how many hold it.

    Attributes:
        wait_s: seconds that a call waits for its turn.
        readers: how many read at once.
        lease_s: seconds after which the lock of a process that died is free.
    """

    wait_s: float = 10
    readers: int = 5
    lease_s: float = 15


@dataclass(frozen=True, slots=True)
class WriteLock:
    """The right to write to a memory.

    Attributes:
        entity_id: the memory.
        owner_id: its owner.
        holder: id of the claim that stands for it.
        fence: number that is higher than that of any earlier holder.
        lost: is set when others have taken the memory over: a commit would be refused.
    """

    entity_id: str
    owner_id: str
    holder: str
    fence: int
    lost: asyncio.Event


@dataclass(eq=False, slots=True)
class _LocalClaim:
    id: str
    queue: QueueKey
    ticket: int = 0
    before: int = 0
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    lost: asyncio.Event = field(default_factory=asyncio.Event)


class MemoryLocks:
    """The locks of one process, which share the memories with those of others.

    With `instances` what a process of the same machine held is free when that one has died;
    otherwise, when its lease has ended. Every method raises `unavailable` when the database
    does not answer.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        source: Source | None = None,
        limits: LockLimits | None = None,
        instances: Instances | None = None,
    ) -> None:
        self._source = source or Source()
        self._limits = limits or LockLimits()
        self._claims = LockQueue(engine, self._source, self._limits.lease_s)
        self._instances = instances
        self._prefix = claim_id_prefix(instances.name if instances else self._source.new_id(""))
        if instances:
            instances.on_death.append(self._claims.remove_of)
        # What this process holds or waits for: by id, and in order by what it is for.
        self._held: dict[str, _LocalClaim] = {}
        self._lines: dict[QueueKey, list[_LocalClaim]] = {}
        # Ids of all claims that are not over, also of those that are just being made.
        self._open: set[str] = set()
        self._renewal: asyncio.TimerHandle | None = None
        self._renewing = False
        self._work: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def write_lock(self, record: MemoryRecord) -> AsyncIterator[WriteLock]:
        """Hold a memory alone among those who write.

        What is known of the memory may be old by the time it is held.

        Raises:
            GatewayError: memory_busy, when its turn does not come in time; conflict, when
                the memory is gone.
        """
        queue = QueueKey(record.id, WRITE, 1)
        async with self._holding(queue, record.owner_id) as claim:
            yield WriteLock(record.id, record.owner_id, claim.id, claim.ticket, claim.lost)

    @asynccontextmanager
    async def read_lock(self, record: MemoryRecord) -> AsyncIterator[None]:
        """Hold a memory as one of some who read, whether or not somebody writes.

        Raises:
            GatewayError: memory_busy, when its turn does not come in time; conflict, when
                the memory is gone.
        """
        queue = QueueKey(record.id, READ, self._limits.readers)
        async with self._holding(queue, record.owner_id):
            yield

    async def being_written(self, entity_ids: Collection[str]) -> set[str]:
        """Return those of the memories that somebody, in any process, is writing to."""
        return await self._claims.being_written(entity_ids)

    async def remove_ended(self) -> int:
        """Clear away what processes that died have left; return how many claims it was."""
        return await self._claims.remove_ended()

    async def close(self) -> None:
        """Wait for what was begun, once nobody asks for locks any more."""
        while self._work:
            await asyncio.gather(*self._work, return_exceptions=True)

    @asynccontextmanager
    async def _holding(self, queue: QueueKey, owner_id: str) -> AsyncIterator[_LocalClaim]:
        claim = _LocalClaim(self._source.new_id(self._prefix), queue)
        self._open.add(claim.id)
        entering = self._begin(self._enter(claim, owner_id))
        try:
            await asyncio.shield(entering)
            await self._wait(claim)
            yield claim
        finally:
            # Whoever is cancelled here leaves nothing behind: the work goes on.
            await asyncio.shield(self._begin(self._leave(claim, entering)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do what touches the database apart from the caller, who may be cancelled."""
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def _enter(self, claim: _LocalClaim, owner_id: str) -> None:
        claim.ticket, claim.before = await self._claims.enter(claim.queue, owner_id, claim.id)
        self._held[claim.id] = claim
        insort(self._lines.setdefault(claim.queue, []), claim, key=lambda other: other.ticket)
        self._renew_later()

    async def _wait(self, claim: _LocalClaim) -> None:
        try:
            async with asyncio.timeout(self._limits.wait_s):
                look_s = _FIRST_LOOK_S
                if claim.before >= claim.queue.holders and self._is_foremost(claim):
                    await asyncio.shield(self._begin(self._remove_remains(claim)))
                while claim.before >= claim.queue.holders:
                    await self._sleep(claim, look_s)
                    look_s = min(look_s * _LOOKS_GROW, _LAST_LOOK_S)
                    await asyncio.shield(self._begin(self._look(claim)))
        except TimeoutError:
            raise busy() from None

    async def _sleep(self, claim: _LocalClaim, look_s: float) -> None:
        if self._is_foremost(claim):
            with suppress(TimeoutError):
                async with asyncio.timeout(look_s):
                    await claim.woken.wait()
        else:
            # One of this process is in the way, and wakes it.
            await claim.woken.wait()
        claim.woken.clear()

    def _is_foremost(self, claim: _LocalClaim) -> bool:
        """Return whether none of this process is in a claim's way."""
        return claim in self._lines.get(claim.queue, [])[: claim.queue.holders]

    async def _remove_remains(self, claim: _LocalClaim) -> None:
        """Take away what is over of this process and still in a claim's way.

        The database did not answer when it was to be taken away, or was killed and came back
        without what it did last.
        """
        await self._claims.remove_remains(claim.queue, claim.ticket, self._prefix, self._open)

    async def _look(self, claim: _LocalClaim) -> None:
        if self._instances:
            await self._instances.bury()
        before = await self._claims.count_before(claim.queue, claim.ticket)
        if before is None:
            raise taken_over()
        claim.before = before

    async def _leave(self, claim: _LocalClaim, entering: asyncio.Task[None]) -> None:
        await asyncio.wait([entering])
        try:
            await self._claims.leave(claim.id)
        except GatewayError as error:
            # Nobody renews it, so it ends by itself, if it is not taken away before.
            log.warning("a lock on a memory was left to end", extra={"error": error.message})
        finally:
            self._open.discard(claim.id)
            self._forget(claim)

    def _forget(self, claim: _LocalClaim) -> None:
        """Take a claim out, and let those behind it look whether it is their turn."""
        if self._held.pop(claim.id, None) is None:
            return
        line = self._lines[claim.queue]
        line.remove(claim)
        for following in line[: claim.queue.holders]:
            following.woken.set()
        if not line:
            del self._lines[claim.queue]
        if not self._held and self._renewal:
            self._renewal.cancel()
            self._renewal = None

    def _renew_later(self) -> None:
        if self._held and not self._renewal and not self._renewing:
            self._renewal = asyncio.get_running_loop().call_later(
                self._limits.lease_s * _RENEWED_AFTER, self._renew_now
            )

    def _renew_now(self) -> None:
        self._renewal = None
        self._renewing = True
        self._begin(self._renew())

    async def _renew(self) -> None:
        claims = list(self._held.values())
        try:
            there = await self._claims.renew([claim.id for claim in claims])
        except GatewayError as error:
            log.warning("locks on memories were not renewed", extra={"error": error.message})
        else:
            for claim in claims:
                if claim.id not in there:
                    claim.lost.set()
                    claim.woken.set()
                    self._forget(claim)
        finally:
            self._renewing = False
            self._renew_later()
