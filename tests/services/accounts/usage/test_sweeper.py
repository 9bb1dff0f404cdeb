"""Old usage records, and old sums, are deleted."""

from prometheus_client import CollectorRegistry
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.usage.metrics import StoredUsageMetrics
from services.accounts.usage.sweeper import usage_sweeper
from services.accounts.usage.tables import days, records
from services.common.clock import Clock
from services.common.ids import RECORD, time_prefix
from services.common.settings import Usage
from services.common.storage.database import reading
from services.common.storage.sweeping import sweeper_lease
from tests.services.accounts.usage.usage_records import DAY_MS, MIDNIGHT_MS, add, record


async def test_what_is_too_old_is_deleted(engine: AsyncEngine) -> None:
    ages = (0, 29, 31, 700, 732)
    batch = []
    for age in ages:
        time_ms = MIDNIGHT_MS - age * DAY_MS
        batch.append(record(1, id=f"{time_prefix(RECORD, time_ms)}_x", time_ms=time_ms))
    await add(engine, batch)
    clock = Clock(now=lambda: MIDNIGHT_MS / 1000)
    lease = sweeper_lease(engine, "usage", 60, clock)
    metrics = StoredUsageMetrics(CollectorRegistry())
    sweeper = usage_sweeper(engine, lease, 60, Usage(), clock, metrics)
    assert await sweeper.sweep()
    async with reading(engine) as connection:
        record_count = await connection.scalar(select(func.count()).select_from(records))
        summed = await connection.scalar(select(func.count()).select_from(days))
    assert (record_count, summed) == (2, 4)
