"""Batches of usage records in the database, and the sums of days."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.usage_pb2 import (
    USAGE_OUTCOME_CANCELLED,
    USAGE_OUTCOME_FAILED,
    UsageLabel,
)
from services.accounts.usage.tables import days, label_days, records
from services.common.settings import Storage
from services.common.storage.database import open_engine, reading
from services.common.storage.migrations.runner import migrate
from tests.services.accounts.usage.usage_records import DAY_MS, MIDNIGHT_MS, add, record, unpriced


async def rows(engine: AsyncEngine, table: Any) -> list[Any]:
    async with reading(engine) as connection:
        return list(await connection.execute(select(table).order_by(*table.primary_key.columns)))


async def test_every_field_is_stored(engine: AsyncEngine) -> None:
    counts = {"cached_tokens": 2, "cache_written_tokens": 3, "reasoning_tokens": 4}
    full = record(1, team_id="team_1", **counts)
    assert await add(engine, [full]) == 1
    [row] = await rows(engine, records)
    stored = dict(row._mapping)
    assert stored.pop("requests") == 1
    assert stored == {
        field.name: getattr(full, field.name)
        for field in full.DESCRIPTOR.fields
        if field.name not in ("is_part", "labels")
    }


async def test_what_is_not_known_is_null(engine: AsyncEngine) -> None:
    there = unpriced(1)
    there.ClearField("first_content_ms")
    await add(engine, [there])
    [row] = await rows(engine, records)
    assert (row.cost_pusd, row.first_content_ms) == (None, None)
    [day] = await rows(engine, days)
    assert (day.cost_pusd, day.unpriced) == (0, 1)


async def test_records_are_summed_up_by_day(engine: AsyncEngine) -> None:
    batch = [
        record(1),
        record(2, time_ms=MIDNIGHT_MS + DAY_MS - 1),
        record(3, time_ms=MIDNIGHT_MS + DAY_MS),
        record(4, outcome=USAGE_OUTCOME_FAILED, cost_pusd=0),
        record(5, outcome=USAGE_OUTCOME_CANCELLED),
        record(6, is_part=True, attempts=0, outcome=USAGE_OUTCOME_FAILED),
        record(7, model="slow"),
    ]
    await add(engine, batch)
    row_of = {(row.day, row.model): row for row in await rows(engine, days)}
    first = row_of[20_780, "fast"]
    assert (first.requests, first.failed_requests, first.input_tokens) == (4, 1, 500)
    assert first.cost_pusd == 4 * 350_000_000
    assert row_of[20_781, "fast"].requests == row_of[20_780, "slow"].requests == 1


async def test_labels_of_new_records_alone_are_summed_up(engine: AsyncEngine) -> None:
    labels = [UsageLabel(name="end_user", value="ada"), UsageLabel(name="project", value="x")]
    labelled = record(1, labels=labels)
    await add(engine, [labelled, record(2)])
    cancelled = record(3, labels=labels[1:], outcome=USAGE_OUTCOME_FAILED, cost_pusd=5)
    await add(engine, [labelled, cancelled, record(4, labels=labels[1:], is_part=True)])
    sums = {
        (row.label, row.value): (row.requests, row.failed_requests, row.input_tokens, row.cost_pusd)
        for row in await rows(engine, label_days)
    }
    assert sums == {
        ("end_user", "ada"): (1, 0, 100, 350_000_000),
        ("project", "x"): (2, 1, 300, 700_000_005),
    }


async def test_a_batch_that_is_sent_again_counts_once(engine: AsyncEngine) -> None:
    assert await add(engine, [record(1), record(2)]) == 2
    assert await add(engine, [record(2), record(3), record(3)]) == 1
    assert await add(engine, [record(1)]) == 0
    [day] = await rows(engine, days)
    assert (day.requests, day.cost_pusd) == (3, 3 * 350_000_000)


async def test_batches_sent_at_once_count_once(engine: AsyncEngine) -> None:
    batch = [record(number) for number in range(50)]
    added = await asyncio.gather(*(add(engine, batch[index:]) for index in range(6)))
    assert sum(added) == 50
    [day] = await rows(engine, days)
    assert (day.requests, day.cost_pusd) == (50, 50 * 350_000_000)


async def test_names_may_have_any_characters(engine: AsyncEngine) -> None:
    names = ["a\0b", "\\u0000", '"; DROP TABLE users', "\U0001f600", "'"]
    await add(engine, [record(i, model=name) for i, name in enumerate(names)])
    stored = [row.model for row in await rows(engine, records)]
    assert stored[2:] == names[2:]
    assert len(await rows(engine, days)) == len(names)


@pytest.mark.parametrize("cost", [0, 1, 2**53 + 1, 2**62])
async def test_costs_are_exact(engine: AsyncEngine, cost: int) -> None:
    await add(engine, [record(1, cost_pusd=cost)])
    [day] = await rows(engine, days)
    assert day.cost_pusd == cost


@settings(max_examples=15)
@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=40), st.data())
def test_sums_equal_the_sum_of_costs(costs: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(costs)))
    asyncio.run(_sums_are_exact(costs, cut))


async def _sums_are_exact(costs: list[int], cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(Storage(data_dir=Path(folder)))
        await migrate(engine)
        batch = [record(number, cost_pusd=cost) for number, cost in enumerate(costs)]
        await add(engine, batch[:cut] or batch)
        await add(engine, batch)
        [day] = await rows(engine, days)
        assert day.cost_pusd == sum(costs)
        await engine.dispose()
