"""Sweeper that removes claims and unused memories which calls of dead processes have left."""

from services.common.leases import Lease
from services.common.sweeping import Sweeper
from services.memory.locks.locks import MemoryLocks
from services.memory.storage.repository import MemoryRepository

# Longer than any call takes from reserving a memory to claiming its lock.
_UNUSED_S = 3600.0
_BATCH = 100


class MemorySweeper(Sweeper):
    """The sweeper of memories."""

    def __init__(
        self, repository: MemoryRepository, locks: MemoryLocks, lease: Lease, every_s: float
    ) -> None:
        super().__init__(lease, every_s)
        self._repository = repository
        self._locks = locks

    async def remove_expired(self) -> None:
        """Remove expired claims, and memories that were reserved and never used."""
        await self._locks.queue.remove_expired()
        while await self._repository.delete_unused(_UNUSED_S, _BATCH) == _BATCH:
            if not await self.renew_lease():
                return
