"""Periodic deletion of old entries of byte stores."""

import logging

from services.common.clock import Clock
from services.common.leases import Lease
from services.common.sweeping import Sweeper
from services.inference.byte_store import Bounds, ByteStore, overdue

# Each sweep lists the whole store: it runs this many times less often than `limits.sweep_every_s`.
ROUNDS = 10

log = logging.getLogger(__name__)


class StoreSweeper(Sweeper):
    """Deletes entries of a store that are too old or exceed its bounds.

    Args:
        name: the name of the store, for the log.
        store: the store.
        lease: see `services.common.sweeping.sweeper_lease`.
        every_s: seconds between two sweeps.
        bounds: the limits of the store.
        clock: the clock.
    """

    def __init__(
        self,
        name: str,
        store: ByteStore,
        lease: Lease,
        every_s: float,
        bounds: Bounds,
        clock: Clock,
    ) -> None:
        super().__init__(lease, every_s)
        self._name = name
        self._store = store
        self._bounds = bounds
        self._clock = clock

    async def remove_expired(self) -> None:
        """Delete the entries that exceed the bounds."""
        entries = await self._store.entries()
        if going := overdue(entries, self._clock.now(), self._bounds):
            await self._store.delete(going)
            log.info("entries swept", extra={"store": self._name, "entries": len(going)})
