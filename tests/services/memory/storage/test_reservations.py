"""Quotas and reservations: counted exactly, whoever comes at once and whoever dies."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.settings import Storage
from services.common.storage.database import open_engine, reading
from services.common.storage.owners import owners
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.tables import memories
from tests.manual_clock import ManualClock
from tests.services.memory.builders import QUOTA, MemoryProcess, count_all, rows_of, turn

GRACE_S = 60


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(engine: AsyncEngine, clock: ManualClock) -> MemoryProcess:
    return MemoryProcess(engine, clock)


@pytest.fixture
async def other(
    storage: Storage, memory: MemoryProcess, clock: ManualClock
) -> AsyncIterator[MemoryProcess]:
    """Another process on the same database."""
    engine = open_engine(storage)
    yield MemoryProcess(engine, clock)
    await engine.dispose()


async def counted(memory: MemoryProcess, owner_id: str = "ada") -> int:
    """Return how many memories a user is said to have, which is how many there are."""
    async with reading(memory.engine) as connection:
        count = await connection.scalar(
            select(owners.c.memories).where(owners.c.owner_id == owner_id)
        )
        there = await connection.scalars(
            select(memories.c.id).where(memories.c.owner_id == owner_id)
        )
    assert (count or 0) == len(there.all())
    return count or 0


async def test_one_too_many_is_refused_and_one_there_is_not(memory: MemoryProcess) -> None:
    for number in range(QUOTA):
        await memory.make(f"m{number}")
    with pytest.raises(GatewayError, match="10 memories") as raised:
        await memory.reserve("ada", "new", QUOTA)
    assert raised.value.reason == errors_pb2.REASON_MEMORY_QUOTA_EXCEEDED
    assert raised.value.http_status == 403
    assert (await memory.reserve("ada", "m3", QUOTA)).turns == 1
    # A plan that allows less takes nothing away.
    assert (await memory.reserve("ada", "m3", 1)).turns == 1
    assert (await memory.reserve("bob", "new", QUOTA)).turns == 0
    assert await counted(memory) == QUOTA


async def test_concurrent_reservations_respect_the_quota(
    memory: MemoryProcess, other: MemoryProcess
) -> None:
    for number in range(QUOTA - 3):
        await memory.make(f"m{number}")
    outcomes = await asyncio.gather(
        *(
            (memory, other)[number % 2].reserve("ada", f"new {number}", QUOTA)
            for number in range(50)
        ),
        return_exceptions=True,
    )
    made = [one for one in outcomes if isinstance(one, MemoryRecord)]
    refused = [one for one in outcomes if isinstance(one, GatewayError)]
    assert len(made) == 3
    assert len(refused) == 47
    assert {one.reason for one in refused} == {errors_pb2.REASON_MEMORY_QUOTA_EXCEEDED}
    assert await counted(memory) == QUOTA
    await asyncio.gather(*(other.release(one) for one in made))
    assert await counted(memory) == QUOTA - 3


async def test_many_who_want_one_memory_make_one(
    memory: MemoryProcess, other: MemoryProcess
) -> None:
    made = await asyncio.gather(
        *((memory, other)[number % 2].reserve("ada", "diary", 1) for number in range(20))
    )
    assert len({one.id for one in made}) == 1
    assert await counted(memory) == 1
    for record in made[:-1]:
        await memory.release(record)
    assert await counted(memory) == 1
    await memory.release(made[-1])
    assert await counted(memory) == 0
    assert set((await rows_of(memory.engine, made[0].id)).values()) == {0}


async def test_what_one_call_gives_back_another_can_still_use(memory: MemoryProcess) -> None:
    first = await memory.reserve("ada", "diary", QUOTA)
    second = await memory.reserve("ada", "diary", QUOTA)
    async with memory.locks.write_lock(first):
        pass
    await memory.release(first)
    second = await memory.add(second, turn(1, 0, "hello", "hi"))
    await memory.release(second)
    await memory.release(first)
    assert await memory.repository.find("ada", "diary") == second
    assert await counted(memory) == 1


async def test_giving_back_twice_or_what_is_gone_does_nothing(memory: MemoryProcess) -> None:
    record = await memory.reserve("ada", "diary", QUOTA)
    await memory.release(record)
    await memory.release(record)
    assert await counted(memory) == 0


async def test_deleting_makes_room_at_once(memory: MemoryProcess) -> None:
    record = await memory.make()
    with pytest.raises(GatewayError):
        await memory.reserve("ada", "new", 1)
    await memory.delete(record)
    assert await counted(memory) == 0
    await memory.reserve("ada", "new", 1)


async def test_what_a_dead_call_reserved_is_dropped_and_nothing_else(
    memory: MemoryProcess, clock: ManualClock
) -> None:
    used = await memory.make("used")
    emptied, _ = await memory.rewind(await memory.make("emptied"), 0)
    for number in range(3):
        await memory.reserve("ada", f"dead {number}", QUOTA)
    await memory.reserve("bob", "dead", QUOTA)
    shared = await memory.reserve("ada", "shared", QUOTA)
    held = await memory.reserve("ada", "held", QUOTA)
    clock.now_s += GRACE_S
    assert await memory.reserve("ada", "shared", QUOTA) == shared_now(shared, clock)
    async with memory.locks.write_lock(held) as lock:
        assert await memory.repository.delete_unused(GRACE_S, limit=2) == 2
        assert await memory.repository.delete_unused(GRACE_S, limit=9) == 2
        assert await memory.repository.delete_unused(GRACE_S, limit=9) == 0
        async with memory.locks.committing(lock) as (connection, stored):
            await memory.repository.append(connection, stored, [turn(1, 0, "hello", "hi")])
    assert await counted(memory) == 4
    assert await counted(memory, "bob") == 0
    assert await memory.repository.find("ada", "used") == used
    assert await memory.repository.find("ada", "emptied") == emptied
    assert await memory.repository.find("ada", "held") is not None
    assert await count_all(memory.engine, memories) == 4


def shared_now(record: MemoryRecord, clock: ManualClock) -> MemoryRecord:
    record.updated_at_ms = clock.now_ms()
    return record


async def test_a_dead_holder_keeps_nothing(memory: MemoryProcess, clock: ManualClock) -> None:
    record = await memory.reserve("ada", "diary", QUOTA)
    async with memory.locks.write_lock(record), memory.locks.read_lock(record):
        clock.now_s += GRACE_S
        assert await memory.repository.delete_unused(GRACE_S, limit=9) == 1
    assert await counted(memory) == 0
    assert set((await rows_of(memory.engine, record.id)).values()) == {0}
