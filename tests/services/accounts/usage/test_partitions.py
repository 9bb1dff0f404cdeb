"""On PostgreSQL usage records are in partitions by day, created ahead and dropped whole."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from unittest.mock import patch

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.usage_pb2 import RecordUsageRequest
from services.accounts.usage.metrics import StoredUsageMetrics
from services.accounts.usage.partitions import create_partitions, day_of_id, drop_partitions
from services.accounts.usage.servicer import UsageServicer
from services.accounts.usage.sweeper import usage_sweeper
from services.accounts.usage.tables import days, records
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.settings import Storage, Usage
from services.common.storage.database import open_engine, reading
from services.common.storage.migrations.runner import migrate
from services.common.storage.sweeping import Sweeper, sweeper_lease
from tests.databases import PostgreSQL
from tests.services.accounts.usage.usage_records import DAY_MS, MIDNIGHT_MS, add, record

NAMES = text(
    "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid "
    "WHERE inhparent = 'usage_records'::regclass ORDER BY relname"
)
TODAY = MIDNIGHT_MS // DAY_MS


@pytest.fixture
async def database(postgresql: PostgreSQL) -> AsyncIterator[AsyncEngine]:
    name = "of_partitions"
    await postgresql.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    await postgresql.execute(f"CREATE DATABASE {name}")
    engine = open_engine(Storage(database_url=postgresql.named(name)))
    await migrate(engine)
    yield engine
    await engine.dispose()


async def partitions(engine: AsyncEngine) -> Sequence[str]:
    """Return the days of the partitions."""
    async with reading(engine) as connection:
        names = (await connection.scalars(NAMES)).all()
    return [name.removeprefix("usage_records_") for name in names]


async def counts(engine: AsyncEngine) -> tuple[int, int]:
    """Return the numbers of records, and of requests in the sums of days."""
    async with reading(engine) as connection:
        stored = await connection.scalar(select(func.count()).select_from(records))
        summed = await connection.scalar(select(func.sum(days.c.requests)))
    return int(stored or 0), int(summed or 0)


def sweeper_of(engine: AsyncEngine, metrics: StoredUsageMetrics) -> Sweeper:
    clock = Clock(now=lambda: MIDNIGHT_MS / 1000)
    lease = sweeper_lease(engine, "usage", 60, clock)
    return usage_sweeper(engine, lease, 60, Usage(), clock, metrics)


async def test_days_come_ahead_and_go_whole(database: AsyncEngine) -> None:
    metrics = StoredUsageMetrics(CollectorRegistry())
    sweeper = sweeper_of(database, metrics)
    assert await sweeper.sweep()
    assert await partitions(database) == ["2026_11_23", "2026_11_24", "2026_11_25"]
    ages = (0, 0.5, 5, 30, 31, 400)
    batch = [record(n, time_ms=MIDNIGHT_MS - int(age * DAY_MS)) for n, age in enumerate(ages)]
    assert await add(database, batch) == 6
    assert await add(database, [*batch, record(7)]) == 1
    assert await counts(database) == (7, 7)
    old = ["2025_10_19", "2026_10_23", "2026_10_24"]
    recent = ["2026_11_18", "2026_11_22", "2026_11_23", "2026_11_24", "2026_11_25"]
    assert await partitions(database) == [*old, *recent]
    assert await sweeper.sweep()
    assert await partitions(database) == [*old[2:], *recent]
    assert await counts(database) == (5, 7)
    # A record of a day that is gone is stored, and goes at the next sweep.
    assert await add(database, [record(8, time_ms=MIDNIGHT_MS - 31 * DAY_MS)]) == 1
    assert await counts(database) == (6, 8)
    assert await sweeper.sweep()
    assert await counts(database) == (5, 8)
    metrics.dropped_days.write()
    assert metrics.dropped_days._value.get() == 3


async def test_workers_that_need_a_day_at_once_share_it(database: AsyncEngine) -> None:
    batch = [record(n, time_ms=MIDNIGHT_MS + n % 4 * DAY_MS) for n in range(40)]
    added = await asyncio.gather(*(add(database, batch[first:]) for first in range(6)))
    assert sum(added) == 40
    assert await counts(database) == (40, 40)
    assert len(await partitions(database)) == 4


async def test_a_backup_does_not_delay_records(database: AsyncEngine) -> None:
    """A transaction that reads the table for long, and so keeps others from dropping a part."""
    await add(database, [record(1)])
    briefly = text("SET LOCAL lock_timeout = '20ms'")
    with patch("services.accounts.usage.partitions._WAIT_BRIEFLY", briefly):
        async with reading(database) as backup:
            assert await backup.scalar(select(func.count()).select_from(records)) == 1
            assert await drop_partitions(database, TODAY + 1) == []
            assert await create_partitions(database, [TODAY + 1]) == ["usage_records_2026_11_24"]
            assert await add(database, [record(2), record(3, time_ms=MIDNIGHT_MS + DAY_MS)]) == 2
        assert await drop_partitions(database, TODAY + 1) == ["usage_records_2026_11_23"]
    assert await counts(database) == (1, 3)


async def test_an_id_must_begin_with_the_time(database: AsyncEngine) -> None:
    metrics = StoredUsageMetrics(CollectorRegistry())
    servicer = UsageServicer(database, database, Clock(), metrics)
    other = record(1, id=record(1, time_ms=MIDNIGHT_MS + 1).id)
    context: Any = None
    with pytest.raises(GatewayError, match="must begin with use_1a") as refused:
        await servicer.RecordUsage(RecordUsageRequest(records=[record(2), other]), context)
    assert refused.value.param == "records[1].id"
    assert await counts(database) == (0, 0)


def test_ids_of_another_form_have_no_day() -> None:
    assert day_of_id(record(1).id) == TODAY
    assert [day_of_id(one) for one in ("", "use_1", "log_00000000000", "use_0000000000G")] == [
        None
    ] * 4
