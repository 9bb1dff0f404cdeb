"""Sweepers, which remove expired and orphaned data periodically."""

import asyncio
import logging
from abc import ABC, abstractmethod

from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.leases import Lease

# Duration of a lease in sweep periods; its holder renews it in each period.
_LEASE_PERIODS = 3

log = logging.getLogger(__name__)


def sweeper_lease(engine: AsyncEngine, name: str, every_s: float, clock: Clock) -> Lease:
    """Return the lease that lets one of the sweepers with this `name` work at a time."""
    return Lease(engine, f"{name}_sweeper", _LEASE_PERIODS * every_s, clock)


class Sweeper(ABC):
    """A sweeper of one process; of the sweepers that share a lease, one works at a time.

    Args:
        lease: see `sweeper_lease`.
        every_s: seconds between two sweeps.
    """

    def __init__(self, lease: Lease, every_s: float) -> None:
        self._lease = lease
        self._every_s = every_s

    async def run(self) -> None:
        """Sweep until cancelled; failed sweeps are retried in the next period."""
        while True:
            try:
                await self.sweep()
            except GatewayError as error:
                log.warning("a sweep was interrupted", extra={"error": error.message})
            except Exception:
                log.exception("a sweep failed")
            await asyncio.sleep(self._every_s)

    async def sweep(self) -> bool:
        """Remove expired data if this sweeper holds or acquires the lease; return whether it does.

        Raises:
            GatewayError: raised by `remove_expired`; data that were removed before stay removed.
        """
        if not await self._lease.take():
            return False
        await self.remove_expired()
        return True

    @abstractmethod
    async def remove_expired(self) -> None:
        """Remove expired data; long removals check `renew_lease` between their batches.

        Raises:
            GatewayError: unavailable, when it cannot be done now.
        """

    async def renew_lease(self) -> bool:
        """Renew the lease; return whether this sweeper still holds it."""
        return await self._lease.take()

    async def stop(self) -> None:
        """Release the lease, so that another process can continue at once."""
        try:
            await self._lease.release()
        except GatewayError as error:
            log.warning(
                "the lease of a sweeper could not be released", extra={"error": error.message}
            )
