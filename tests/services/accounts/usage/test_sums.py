"""Sums by hour and by day are those of the records, however they were added."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import UsageRecord
from services.accounts.usage import recording
from services.common.storage.database import write
from tests.services.accounts.usage.expected_sums import differences
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
