"""Sweeper that removes claims and unused memories which calls of dead processes have left."""

from functools import partial

from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper, remove_in_batches
from services.memory.locks.locks import MemoryLocks
from services.memory.storage.repository import MemoryRepository

# Longer than any call takes from reserving a memory to claiming its lock.
_UNUSED_S = 3600.0
_BATCH = 100


def memory_sweeper(
    repository: MemoryRepository, locks: MemoryLocks, lease: Lease, every_s: float
) -> Sweeper:
    """Return the sweeper of expired claims, and of memories that were reserved and never used."""

    async def remove_expired(renew: Renew) -> None:
        await locks.queue.remove_expired()
        await remove_in_batches(partial(repository.delete_unused, _UNUSED_S), _BATCH, renew)

    return Sweeper(lease, every_s, remove_expired)
