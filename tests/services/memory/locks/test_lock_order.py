"""The order in which calls get locks, and how little they query."""

import asyncio
from contextlib import AsyncExitStack

from gateway.errors.v1 import errors_pb2
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.tables import claims
from tests.manual_clock import ManualClock
from tests.services.memory.builders import MemoryProcess, count_all, turn, until_waiting
from tests.services.memory.locks.lock_helpers import (
    HASTY,
    LEASE_S,
    Room,
    Start,
    add_dead_claim,
    noted,
    refusal,
)


async def test_writers_are_served_in_order(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    room = Room(record)
    async with asyncio.TaskGroup() as tasks, ours.locks.write_lock(record):
        for number in range(8):
            # Two of ours, two of theirs, and so on.
            process = (ours, theirs)[number // 2 % 2]
            tasks.create_task(room.write(process, f"w{number}"))
            await until_waiting(ours.engine, 2 + number)
        assert room.entered == []
    assert room.entered == [f"w{number}" for number in range(8)]


async def test_five_readers_at_once_and_others_in_order(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    room, first = Room(record), [AsyncExitStack() for _ in range(5)]
    async with asyncio.TaskGroup() as tasks:
        for number, stack in enumerate(first):
            await stack.enter_async_context((ours, theirs)[number % 2].locks.read_lock(record))
        for number in range(3):
            tasks.create_task(room.read((theirs, ours)[number % 2], f"r{number}"))
            await until_waiting(ours.engine, 6 + number)
        for number, stack in enumerate(first):
            assert room.entered == ["r0", "r1", "r2"][:number]
            await stack.aclose()
            while len(room.entered) < min(number + 1, 3):
                await count_all(ours.engine, claims)
        room.leave.set()
    assert room.entered == ["r0", "r1", "r2"]


async def test_readers_of_one_process_follow_whoever_leaves(
    ours: MemoryProcess, record: MemoryRecord
) -> None:
    room, first = Room(record), [AsyncExitStack() for _ in range(5)]
    async with asyncio.TaskGroup() as tasks:
        for stack in first:
            await stack.enter_async_context(ours.locks.read_lock(record))
        for number in range(3):
            tasks.create_task(room.read(ours, f"r{number}"))
            await until_waiting(ours.engine, 6 + number)
        # The last of those who hold a lock leaves first.
        for number, stack in enumerate(reversed(first)):
            await stack.aclose()
            while len(room.entered) < min(number + 1, 3):
                await count_all(ours.engine, claims)
        room.leave.set()
    assert room.entered == ["r0", "r1", "r2"]


async def test_a_sixth_reader_is_refused_until_one_leaves(
    start: Start, record: MemoryRecord
) -> None:
    ours, theirs = start(HASTY), start(HASTY)
    async with AsyncExitStack() as four:
        for number in range(4):
            await four.enter_async_context((ours, theirs)[number % 2].locks.read_lock(record))
        async with ours.locks.read_lock(record):
            refused = await refusal(theirs.locks.read_lock(record))
            assert refused.reason == errors_pb2.REASON_MEMORY_BUSY
        async with theirs.locks.read_lock(record):
            pass


async def test_readers_and_writers_do_not_block_each_other(
    start: Start, record: MemoryRecord
) -> None:
    ours, theirs = start(HASTY), start(HASTY)
    async with ours.locks.write_lock(record) as lock:
        async with theirs.locks.read_lock(record), ours.locks.read_lock(record):
            pass
        async with ours.locks.committing(lock) as (connection, stored):
            await ours.repository.append(connection, stored, [turn(2, 2, "q", "a")])
            if connection.dialect.name == "postgresql":
                # One who writes to a SQLite file keeps all others from it, for a moment.
                async with theirs.locks.read_lock(record):
                    pass
    async with ours.locks.read_lock(record), theirs.locks.write_lock(record):
        pass


async def test_locks_on_two_memories_are_independent(start: Start, record: MemoryRecord) -> None:
    ours = start(HASTY)
    other = await ours.make("other")
    async with ours.locks.write_lock(record), ours.locks.write_lock(other):
        assert await ours.locks.queue.being_written([record.id, other.id]) == {record.id, other.id}
    assert await ours.locks.queue.being_written([record.id, other.id]) == set()


async def test_readers_and_expired_claims_are_not_writers(
    ours: MemoryProcess, record: MemoryRecord, clock: ManualClock
) -> None:
    queue = ours.locks.queue
    async with ours.locks.read_lock(record):
        assert await queue.being_written([record.id]) == set()
    await add_dead_claim(ours, record)
    assert await queue.being_written([record.id]) == {record.id}
    clock.now_s += LEASE_S + 1
    assert await queue.being_written([record.id]) == set()
    assert await queue.remove_expired() == 1


async def test_waiting_too_long_raises_memory_busy(start: Start, record: MemoryRecord) -> None:
    ours, theirs = start(HASTY), start(HASTY)
    async with ours.locks.write_lock(record):
        for process in (ours, theirs):
            refused = await refusal(process.locks.write_lock(record))
            assert refused.reason == errors_pb2.REASON_MEMORY_BUSY
            assert refused.http_status == 429
            assert refused.retry_after_s is not None
        assert await count_all(ours.engine, claims) == 1
    async with theirs.locks.write_lock(record):
        pass


async def test_free_lock_costs_one_commit_to_take_and_one_to_release(
    ours: MemoryProcess, record: MemoryRecord
) -> None:
    for taking in (ours.locks.write_lock, ours.locks.read_lock):
        with noted(ours, "commit") as commits, noted(ours, "begin") as begins:
            async with taking(record):
                assert (len(begins), len(commits)) == (1, 1)
        assert (len(begins), len(commits)) == (2, 2)


async def test_waiting_behind_own_process_does_not_poll(start: Start, record: MemoryRecord) -> None:
    ours = start(HASTY)
    async with ours.locks.write_lock(record):
        with noted(ours, "begin") as begins:
            await refusal(ours.locks.write_lock(record))
        # To make a claim, and to take it back.
        assert len(begins) == 2


async def test_only_the_foremost_waiter_of_a_process_polls(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    room = Room(record)
    async with asyncio.TaskGroup() as tasks, theirs.locks.write_lock(record):
        for number in range(5):
            tasks.create_task(room.write(ours, f"w{number}"))
            await until_waiting(theirs.engine, 2 + number)
        with noted(ours) as looks:
            # Until it has looked several times.
            while len(looks) < 6:
                await count_all(theirs.engine, claims)
        assert len({look[3] for look in looks if look[2].startswith("SELECT")}) == 1
    assert room.entered == [f"w{number}" for number in range(5)]
