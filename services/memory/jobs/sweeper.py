"""Sweeper that removes what has expired, and what calls of dead processes have left."""

from services.common.leases import Lease
from services.common.sweeping import Sweeper
from services.memory.locks.locks import MemoryLocks
from services.memory.responses.repository import ResponseRepository
from services.memory.storage.repository import MemoryRepository

# Longer than any call takes from reserving a memory to claiming its lock.
_UNUSED_S = 3600.0
_BATCH = 100


class MemorySweeper(Sweeper):
    """The sweeper of memories and of stored responses."""

    def __init__(
        self,
        repository: MemoryRepository,
        locks: MemoryLocks,
        responses: ResponseRepository,
        lease: Lease,
        every_s: float,
    ) -> None:
        super().__init__(lease, every_s)
        self._repository = repository
        self._responses = responses
        self._locks = locks

    async def clear(self) -> None:
        """Remove expired claims and responses, and memories that were reserved and never used.

        Responses whose process has died are interrupted.
        """
        await self._locks.remove_expired()
        await self._responses.interrupt_expired()
        while await self._responses.delete_expired(_BATCH) == _BATCH:
            if not await self.goes_on():
                return
        while await self._repository.delete_unused(_UNUSED_S, _BATCH) == _BATCH:
            if not await self.goes_on():
                return
