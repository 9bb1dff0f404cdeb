"""Sweepers, which remove expired and orphaned data periodically."""

import asyncio
import logging
from abc import ABC, abstractmethod

from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.leases import Lease

# How many periods between sweeps a lease lasts: its holder renews it in each.
_LEASE_PERIODS = 3

log = logging.getLogger(__name__)


def sweeper_lease(engine: AsyncEngine, name: str, every_s: float, clock: Clock) -> Lease:
    """Return the lease by which one of the sweepers called `name` works at a time."""
    return Lease(engine, f"{name}_sweeper", _LEASE_PERIODS * every_s, clock)


class Sweeper(ABC):
    """A sweeper of one process; of those that share a lease one at a time works.

    Args:
        lease: see `sweeper_lease`.
        every_s: seconds between two sweeps.
    """

    def __init__(self, lease: Lease, every_s: float) -> None:
        self._lease = lease
        self._every_s = every_s

    async def run(self) -> None:
        """Sweep for ever; what does not work now is tried again the next time."""
        while True:
            try:
                await self.sweep()
            except GatewayError as error:
                log.warning("a sweep was cut short", extra={"error": error.message})
            except Exception:
                log.exception("a sweep failed")
            await asyncio.sleep(self._every_s)

    async def sweep(self) -> bool:
        """Clear away what is over, unless another process does; return whether it was ours to do.

        Raises:
            GatewayError: what `clear` raises; what was cleared by then is.
        """
        if not await self._lease.take():
            return False
        await self.clear()
        return True

    @abstractmethod
    async def clear(self) -> None:
        """Clear away what is over; ask `goes_on` between the parts of much.

        Raises:
            GatewayError: unavailable, when it cannot be done now.
        """

    async def goes_on(self) -> bool:
        """Renew the lease; return whether this sweeper still holds it."""
        return await self._lease.take()

    async def stop(self) -> None:
        """Leave the work to another process, at once."""
        try:
            await self._lease.release()
        except GatewayError as error:
            log.warning("a sweeper's lease was left", extra={"error": error.message})
