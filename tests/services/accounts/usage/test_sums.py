"""Sums by hour and by day are those of the records, however they were added."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import UsageRecord
from services.accounts.usage import recording, unsummed
from services.accounts.usage.metrics import StoredUsageMetrics
from services.accounts.usage.unsummed import Summing, sum_up, summing_lease
from services.common.storage.database import write
from tests.manual_clock import ManualClock
from tests.services.accounts.usage.expected_sums import differences
from tests.services.accounts.usage.old_version import add_as_before
from tests.services.accounts.usage.usage_records import DAY_MS, MIDNIGHT_MS, add, record

OUTCOMES = (
    *(usage_pb2.USAGE_OUTCOME_SERVED,) * 4,
    usage_pb2.USAGE_OUTCOME_FAILED,
    usage_pb2.USAGE_OUTCOME_CANCELLED,
)


def varied(number: int, seed: int = 1) -> Sequence[UsageRecord]:
    """Return records that differ in all that sums depend on."""
    random_numbers = random.Random(seed)
    made = []
    for index in range(number):
        ms = int(random_numbers.lognormvariate(7, 3))
        one = record(
            index,
            time_ms=MIDNIGHT_MS + random_numbers.randrange(-DAY_MS // 8, DAY_MS // 8),
            user_id=f"user_{random_numbers.randrange(3)}",
            team_id=random_numbers.choice(("", "team_1")),
            model=random_numbers.choice(("fast", "slow")),
            outcome=random_numbers.choice(OUTCOMES),
            is_part=random_numbers.random() < 0.2,
            estimated=random_numbers.random() < 0.2,
            duration_ms=min(ms, 2**32 - 1),
            first_content_ms=min(ms // 3, 2**32 - 1),
            cost_pusd=random_numbers.randrange(10**12),
            reasoning_tokens=random_numbers.randrange(9),
        )
        if random_numbers.random() < 0.2:
            one.ClearField("cost_pusd")
        if random_numbers.random() < 0.2:
            one.ClearField("first_content_ms")
        made.append(one)
    return made


async def test_sums_are_those_of_the_records(engine: AsyncEngine) -> None:
    batch = varied(300)
    await add(engine, batch[:200])
    await add(engine, batch[100:])
    assert await differences(engine, batch) == []


@pytest.mark.parametrize("duration", [0, 1, 10, 11, 750_000, 750_001, 2**32 - 1])
async def test_durations_at_ends_of_buckets(engine: AsyncEngine, duration: int) -> None:
    one = record(1, duration_ms=duration, first_content_ms=duration)
    await add(engine, [one])
    assert await differences(engine, [one]) == []


async def test_batches_at_once_are_summed_once(engine: AsyncEngine) -> None:
    batch = varied(120)
    await asyncio.gather(*(add(engine, batch[index * 10 :]) for index in range(6)))
    assert await differences(engine, batch) == []


async def test_records_of_an_old_version_are_summed(engine: AsyncEngine) -> None:
    batch = varied(90)
    await add_as_before(engine, batch[:60])
    await add(engine, batch[40:])
    steps = [await sum_up(engine, 25) for _ in range(4)]
    assert steps == [25, 25, 10, 0]
    assert await differences(engine, batch) == []


async def test_an_old_version_may_send_them_again(engine: AsyncEngine) -> None:
    batch = varied(30)
    await add_as_before(engine, batch[:20])
    await sum_up(engine, 15)
    await add_as_before(engine, batch)
    while await sum_up(engine, 15):
        pass
    assert await differences(engine, batch) == []


async def test_the_newest_are_summed_first(engine: AsyncEngine) -> None:
    batch = [record(number, model=f"m{number}") for number in range(6)]
    await add_as_before(engine, batch)
    assert await sum_up(engine, 2) == 2
    async with engine.connect() as connection:
        summed = await connection.execute(text("SELECT model FROM usage_model_hours ORDER BY 1"))
        assert list(summed.scalars()) == ["m4", "m5"]


async def test_processes_at_once_sum_each_record_once(engine: AsyncEngine) -> None:
    batch = varied(200)
    await add_as_before(engine, batch)
    summed = await asyncio.gather(*(sum_up(engine, 60) for _ in range(6)))
    while number := await sum_up(engine, 60):
        summed.append(number)
    assert sum(summed) == 200
    assert await differences(engine, batch) == []


class _KilledError(Exception):
    pass


async def killed_before_the_commit(engine: AsyncEngine, work: Callable[..., Any]) -> int:
    async def transact(connection: AsyncConnection) -> int:
        await work(connection)
        raise _KilledError

    return await write(engine, transact)


async def test_a_batch_that_is_not_committed_counts_once(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = varied(30)
    with monkeypatch.context() as patched:
        patched.setattr(recording, "write", killed_before_the_commit)
        with pytest.raises(_KilledError):
            await add(engine, batch)
    assert await add(engine, batch) == 30
    assert await differences(engine, batch) == []


async def test_summing_that_is_not_committed_counts_once(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = varied(30)
    await add_as_before(engine, batch)
    with monkeypatch.context() as patched:
        patched.setattr(unsummed, "write", killed_before_the_commit)
        with pytest.raises(_KilledError):
            await sum_up(engine, 30)
    assert await sum_up(engine, 100) == 30
    assert await differences(engine, batch) == []


async def test_one_process_sums_up_all(engine: AsyncEngine) -> None:
    batch = varied(5)
    await add_as_before(engine, batch)
    clock = ManualClock()
    registry = CollectorRegistry()
    metrics = StoredUsageMetrics(registry)
    held = summing_lease(engine, clock)
    assert await held.take()
    summing = Summing(engine, summing_lease(engine, clock), metrics)
    await summing.sum_up_all()
    assert await sum_up(engine, 1) == 1
    await held.release()
    await summing.sum_up_all()
    assert await differences(engine, batch) == []
    assert b"gateway_usage_records_summed_later_total 4.0" in generate_latest(registry)
    assert await held.take()
