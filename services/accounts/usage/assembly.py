"""Builds the usage service from settings."""

import asyncio
from typing import Self

from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.usage.servicer import UsageServicer
from services.accounts.usage.sweeper import UsageSweeper
from services.common.clock import Clock
from services.common.settings import Settings
from services.common.sweeping import sweeper_lease

# Usage is deleted by the day; sweeping several times a day is enough.
_SWEEP_EVERY_S = 3_600.0


class UsageRecords:
    """The usage service of one process, with its running sweeper.

    Attributes:
        servicer: the gRPC servicer.
    """

    def __init__(self, servicer: UsageServicer, sweeper: UsageSweeper) -> None:
        self.servicer = servicer
        self._sweeper = sweeper
        self._sweeping = asyncio.create_task(sweeper.run())

    @classmethod
    def start(cls, settings: Settings, database: AsyncEngine, clock: Clock) -> Self:
        """Create the service with a migrated database, and start its sweeper."""
        lease = sweeper_lease(database, "usage", _SWEEP_EVERY_S, clock)
        sweeper = UsageSweeper(database, lease, _SWEEP_EVERY_S, settings.usage, clock)
        return cls(UsageServicer(database, clock), sweeper)

    async def stop(self) -> None:
        """Stop the sweeper."""
        self._sweeping.cancel()
        await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._sweeper.stop()
