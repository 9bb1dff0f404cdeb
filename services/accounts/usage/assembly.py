"""Builds the usage service from settings."""

from typing import Self

from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.usage.metrics import StoredUsageMetrics
from services.accounts.usage.servicer import UsageServicer
from services.accounts.usage.sweeper import usage_sweeper
from services.common.clock import Clock
from services.common.settings import Settings
from services.common.storage.database import open_engine, reports_storage
from services.common.storage.sweeping import Sweeper, sweeper_lease

# Usage is deleted by the hour; sweeping once an hour is enough.
_SWEEP_EVERY_S = 3_600.0


class UsageRecords:
    """The usage service of one process, with its running background work.

    Attributes:
        servicer: the gRPC servicer.
    """

    def __init__(
        self,
        servicer: UsageServicer,
        sweeper: Sweeper,
        replica: AsyncEngine | None,
    ) -> None:
        self.servicer = servicer
        self._sweeper = sweeper
        self._replica = replica
        sweeper.start()

    @classmethod
    def start(
        cls, settings: Settings, database: AsyncEngine, clock: Clock, registry: CollectorRegistry
    ) -> Self:
        """Create the service with a migrated database, and start its background work.

        Raises:
            SettingsError: `storage.reports_url` is not a PostgreSQL URL.
        """
        metrics = StoredUsageMetrics(registry)
        of_reports = reports_storage(settings.storage)
        replica = open_engine(of_reports) if of_reports else None
        lease = sweeper_lease(database, "usage", _SWEEP_EVERY_S, clock)
        return cls(
            UsageServicer(database, replica or database, clock, metrics),
            usage_sweeper(database, lease, _SWEEP_EVERY_S, settings.usage, clock, metrics),
            replica,
        )

    async def stop(self) -> None:
        """Stop the background work."""
        await self._sweeper.stop()
        if self._replica is not None:
            await self._replica.dispose()
