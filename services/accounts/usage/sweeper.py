"""The sweeper that deletes old usage records and old sums."""

import logging

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.usage.tables import DAY_MS, days, records
from services.common.clock import Clock
from services.common.ids import RECORD, time_prefix
from services.common.settings import Usage
from services.common.storage.database import write
from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper, remove_in_batches

_AT_ONCE = 5_000

log = logging.getLogger(__name__)


def usage_sweeper(
    engine: AsyncEngine, lease: Lease, every_s: float, settings: Usage, clock: Clock
) -> Sweeper:
    """Return the sweeper of records, and of sums of days, older than the settings say."""

    async def remove_expired(renew: Renew) -> None:
        now_ms = clock.now_ms()
        oldest_day = (now_ms - int(settings.keep_days_s * 1000)) // DAY_MS
        old_days = delete(days).where(days.c.day < oldest_day)
        await write(engine, lambda connection: connection.execute(old_days))
        oldest = time_prefix(RECORD, now_ms - int(settings.keep_records_s * 1000))

        async def remove_records(at_most: int) -> int:
            old = select(records.c.id).where(records.c.id < oldest).order_by(records.c.id)
            oldest_records = delete(records).where(records.c.id.in_(old.limit(at_most)))
            removed = await write(engine, lambda connection: connection.execute(oldest_records))
            if removed.rowcount:
                log.info("old usage records deleted", extra={"records": removed.rowcount})
            return removed.rowcount

        await remove_in_batches(remove_records, _AT_ONCE, renew)

    return Sweeper(lease, every_s, remove_expired)
