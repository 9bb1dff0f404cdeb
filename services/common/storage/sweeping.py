"""Sweepers, which remove expired and orphaned data periodically."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.storage.leases import Lease

# Renews the lease of a sweeper; returns whether the sweeper still holds it.
Renew = Callable[[], Awaitable[bool]]
# Removes expired data. Long removals call `Renew` between their batches, and end if it returns
# False. May raise GatewayError; data that were removed before stay removed.
RemoveExpired = Callable[[Renew], Awaitable[None]]

# Duration of a lease in sweep periods; its holder renews it in each period.
_LEASE_PERIODS = 3
# Seconds after a start, at most, in which nothing is swept: requests come first, and a process that
# is started again and again does not sweep each time.
_AFTER_START_S = 5.0

log = logging.getLogger(__name__)


def sweeper_lease(engine: AsyncEngine, name: str, every_s: float, clock: Clock) -> Lease:
    """Return the lease that lets one of the sweepers with this `name` work at a time."""
    return Lease(engine, f"{name}_sweeper", _LEASE_PERIODS * every_s, clock)


async def remove_in_batches(
    remove: Callable[[int], Awaitable[int]], size: int, renew: Renew
) -> None:
    """Remove batches of `size` rows, until a batch is smaller or the lease is lost.

    `remove` removes up to a number of rows, and returns how many it has removed.
    """
    while await remove(size) == size and await renew():
        pass


class Sweeper:
    """A sweeper of one process; of the sweepers that share a lease, one works at a time.

    The first sweep is a period after the start, or a few seconds if periods are longer.

    Args:
        lease: see `sweeper_lease`.
        every_s: seconds between two sweeps.
        remove_expired: removes expired data, if this sweeper holds the lease.
    """

    def __init__(self, lease: Lease, every_s: float, remove_expired: RemoveExpired) -> None:
        self._lease = lease
        self._every_s = every_s
        self._remove_expired = remove_expired
        self._running: asyncio.Task[None] | None = None
        self._may_hold_lease = False

    def start(self) -> None:
        """Sweep in the background until `stop`."""
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop, and release the lease, so that another process can continue at once."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        if not self._may_hold_lease:
            return
        try:
            await self._lease.release()
        except GatewayError as error:
            log.warning(
                "the lease of a sweeper could not be released", extra={"error": error.message}
            )

    async def sweep(self) -> bool:
        """Remove expired data if this sweeper holds or acquires the lease; return whether it does.

        Raises:
            GatewayError: raised by the removal.
        """
        self._may_hold_lease = True
        if not await self._lease.take():
            return False
        await self._remove_expired(self._lease.take)
        return True

    async def _run(self) -> None:
        """Sweep until cancelled; failed sweeps are retried in the next period."""
        await asyncio.sleep(min(self._every_s, _AFTER_START_S))
        while True:
            try:
                await self.sweep()
            except GatewayError as error:
                log.warning("a sweep was interrupted", extra={"error": error.message})
            except Exception:
                log.exception("a sweep failed")
            await asyncio.sleep(self._every_s)
