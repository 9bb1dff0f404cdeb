"""Builds the usage service from settings."""

from typing import Self

from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.usage.servicer import UsageServicer
from services.accounts.usage.sweeper import usage_sweeper
from services.common.clock import Clock
from services.common.settings import Settings
from services.common.storage.sweeping import Sweeper, sweeper_lease

# Usage is deleted by the day; sweeping several times a day is enough.
_SWEEP_EVERY_S = 3_600.0


class UsageRecords:
    """The usage service of one process, with its running sweeper.

    Attributes:
        servicer: the gRPC servicer.
    """

    def __init__(self, servicer: UsageServicer, sweeper: Sweeper) -> None:
        self.servicer = servicer
        self._sweeper = sweeper
        sweeper.start()

    @classmethod
    def start(cls, settings: Settings, database: AsyncEngine, clock: Clock) -> Self:
        """Create the service with a migrated database, and start its sweeper."""
        lease = sweeper_lease(database, "usage", _SWEEP_EVERY_S, clock)
        sweeper = usage_sweeper(database, lease, _SWEEP_EVERY_S, settings.usage, clock)
        return cls(UsageServicer(database, clock), sweeper)

    async def stop(self) -> None:
        """Stop the sweeper."""
        await self._sweeper.stop()
