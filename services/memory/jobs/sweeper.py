"""Clears away what calls that died have left: memories without a turn, claims that ended."""

from services.common.leases import Lease
from services.common.sweeping import Sweeper
from services.memory.locks.locks import MemoryLocks
from services.memory.storage.repository import MemoryRepository

# Longer than any call needs from reserving a memory to claiming it.
_UNUSED_S = 3600.0
_AT_ONCE = 100


class MemorySweeper(Sweeper):
    """The sweeper of memories."""

    def __init__(
        self, repository: MemoryRepository, locks: MemoryLocks, lease: Lease, every_s: float
    ) -> None:
        super().__init__(lease, every_s)
        self._repository = repository
        self._locks = locks

    async def clear(self) -> None:
        """Clear away claims that ended, and memories that were reserved and never used."""
        await self._locks.remove_ended()
        while await self._repository.drop_unused(_UNUSED_S, _AT_ONCE) == _AT_ONCE:
            if not await self.goes_on():
                return
