"""Periodic deletion of old entries of byte stores."""

import logging

from services.common.clock import Clock
from services.common.storage.byte_store import ByteStore, StoreLimits, overdue
from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper

# Each sweep lists the whole store: it runs this many times less often than `limits.sweep_every_s`.
ROUNDS = 10

log = logging.getLogger(__name__)


def store_sweeper(
    name: str, store: ByteStore, lease: Lease, every_s: float, bounds: StoreLimits, clock: Clock
) -> Sweeper:
    """Return the sweeper of the entries of a store that are too old or exceed its bounds.

    Args:
        name: the name of the store, for the log.
        store: the store.
        lease: see `services.common.storage.sweeping.sweeper_lease`.
        every_s: seconds between two sweeps.
        bounds: the limits of the store.
        clock: the clock.
    """

    async def remove_overdue(renew: Renew) -> None:
        keys = overdue(await store.entries(), clock.now(), bounds)
        if keys:
            await store.delete(keys)
            log.info("entries swept", extra={"store": name, "entries": len(keys)})

    return Sweeper(lease, every_s, remove_overdue)
