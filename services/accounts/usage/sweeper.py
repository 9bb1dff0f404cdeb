"""The sweeper that deletes old usage records and old sums.

On PostgreSQL it drops whole days of records, and creates the partitions of the next days. All other
rows are deleted in batches.
"""

import logging

from sqlalchemy import Table, delete, select, tuple_
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.usage.metrics import StoredUsageMetrics
from services.accounts.usage.partitions import create_partitions, drop_partitions
from services.accounts.usage.tables import (
    DAY_MS,
    HOUR_MS,
    days,
    hours,
    label_days,
    model_hours,
    records,
)
from services.common.clock import Clock
from services.common.ids import RECORD, time_prefix
from services.common.settings import Usage
from services.common.storage.database import write
from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper, remove_in_batches

_AT_ONCE = 5_000
# Days whose partitions exist before they begin, with the current one.
_DAYS_AHEAD = 3
# Sums of hours are kept for the longest interval of an activity report at least.
_KEEP_HOURS_MS = 32 * DAY_MS

log = logging.getLogger(__name__)


def usage_sweeper(
    engine: AsyncEngine,
    lease: Lease,
    every_s: float,
    settings: Usage,
    clock: Clock,
    metrics: StoredUsageMetrics,
) -> Sweeper:
    """Return the sweeper of records, and of sums, older than the settings say."""
    is_partitioned = engine.dialect.name == "postgresql"

    async def move_days(today: int, oldest_day: int) -> None:
        """Create the partitions of the next days, and drop those of old ones."""
        await create_partitions(engine, range(today, today + _DAYS_AHEAD))
        dropped = await drop_partitions(engine, oldest_day)
        metrics.dropped_days.inc(len(dropped))
        for name in dropped:
            log.info("a day of old usage records was dropped", extra={"table": name})

    async def remove_expired(renew: Renew) -> None:
        now_ms = clock.now_ms()
        keep_records_ms = int(settings.keep_records_s * 1000)
        oldest_ms = now_ms - keep_records_ms
        if is_partitioned:
            await move_days(now_ms // DAY_MS, oldest_ms // DAY_MS)
        oldest_hour = (now_ms - max(keep_records_ms, _KEEP_HOURS_MS)) // HOUR_MS
        for table, oldest in (
            (days, (now_ms - int(settings.keep_days_s * 1000)) // DAY_MS),
            (label_days, (now_ms - int(settings.keep_days_s * 1000)) // DAY_MS),
            (hours, oldest_hour),
            (model_hours, oldest_hour),
            *(() if is_partitioned else ((records, time_prefix(RECORD, oldest_ms)),)),
        ):

            async def remove(at_most: int, table: Table = table, oldest: int | str = oldest) -> int:
                removed = await remove_before(engine, table, oldest, at_most)
                metrics.deleted.labels(table.name).inc(removed)
                if removed:
                    log.info("old usage deleted", extra={"table": table.name, "rows": removed})
                return removed

            await remove_in_batches(remove, _AT_ONCE, renew)

    return Sweeper(lease, every_s, remove_expired)


async def remove_before(engine: AsyncEngine, table: Table, oldest: int | str, at_most: int) -> int:
    """Delete rows whose key begins before `oldest`, the oldest first; return their number.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    key = tuple(table.primary_key.columns)
    which = key[0] < oldest
    old = select(*key).where(which).order_by(*key).limit(at_most)
    # The range is repeated, so that the rest of the table is not read.
    deletion = delete(table).where(which, tuple_(*key).in_(old))
    return (await write(engine, lambda connection: connection.execute(deletion))).rowcount
