"""The sweeper that deletes old usage records and old sums."""

import logging

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.usage.tables import DAY_MS, days, records
from services.common.clock import Clock
from services.common.database import writing
from services.common.ids import RECORD, time_prefix
from services.common.leases import Lease
from services.common.settings import Usage
from services.common.sweeping import Sweeper

_AT_ONCE = 5_000

log = logging.getLogger(__name__)


class UsageSweeper(Sweeper):
    """Deletes records, and sums of days, after the retention times of the settings."""

    def __init__(
        self, engine: AsyncEngine, lease: Lease, every_s: float, settings: Usage, clock: Clock
    ) -> None:
        super().__init__(lease, every_s)
        self._engine = engine
        self._settings = settings
        self._clock = clock

    async def remove_expired(self) -> None:
        """Delete old sums, and old records in batches of `_AT_ONCE` rows."""
        now_ms = self._clock.now_ms()
        oldest_day = (now_ms - int(self._settings.keep_days_s * 1000)) // DAY_MS
        async with writing(self._engine) as connection:
            await connection.execute(delete(days).where(days.c.day < oldest_day))
        oldest = time_prefix(RECORD, now_ms - int(self._settings.keep_records_s * 1000))
        while True:
            old = select(records.c.id).where(records.c.id < oldest).order_by(records.c.id)
            async with writing(self._engine) as connection:
                removed = await connection.execute(
                    delete(records).where(records.c.id.in_(old.limit(_AT_ONCE)))
                )
            if removed.rowcount:
                log.info("old usage records deleted", extra={"records": removed.rowcount})
            if removed.rowcount < _AT_ONCE or not await self.renew_lease():
                return
