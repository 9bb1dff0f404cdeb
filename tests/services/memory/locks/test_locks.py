"""Locks on memories, among the tasks of one process and among processes."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from sqlalchemy import delete, event, exc, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.common.database import open_engine, reading, writing
from services.common.errors import GatewayError
from services.common.settings import Storage
from services.memory.locks.lock_queue import WRITE, LockQueue, QueueKey
from services.memory.locks.locks import LockLimits
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.tables import claims
from tests.services.memory.builders import Clock, MemoryProcess, count_all, turn, until_waiting

# Leases go by the tests' clock, waiting and renewing by the real one.
LEASE_S = 20.0
PATIENT = LockLimits(wait_s=60, lease_s=LEASE_S)
HASTY = LockLimits(wait_s=0.05, lease_s=LEASE_S)
RENEWING = LockLimits(wait_s=60, lease_s=0.05)

Start = Callable[[LockLimits], MemoryProcess]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def start(storage: Storage, engine: AsyncEngine, clock: Clock) -> AsyncIterator[Start]:
    """Start processes on one database; at the end nobody may have left anything."""
    processes: list[MemoryProcess] = []

    def start(limits: LockLimits) -> MemoryProcess:
        processes.append(MemoryProcess(open_engine(storage), clock, limits))
        return processes[-1]

    yield start
    for process in processes:
        await process.locks.close()
        await process.engine.dispose()
    assert await count_all(engine, claims) == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture
def ours(start: Start) -> MemoryProcess:
    return start(PATIENT)


@pytest.fixture
def theirs(start: Start) -> MemoryProcess:
    return start(PATIENT)


@pytest.fixture
async def record(ours: MemoryProcess) -> MemoryRecord:
    return await ours.make()


@dataclass
class Room:
    """Notes who comes in; readers stay until they are told to leave."""

    record: MemoryRecord
    entered: list[str] = field(default_factory=list)
    leave: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, process: MemoryProcess, name: str) -> None:
        async with process.locks.write_lock(self.record):
            self.entered.append(name)

    async def read(self, process: MemoryProcess, name: str) -> None:
        async with process.locks.read_lock(self.record):
            self.entered.append(name)
            await self.leave.wait()


async def refusal(taking: Any) -> GatewayError:
    """Give what a lock is refused with."""
    with pytest.raises(GatewayError) as raised:
        async with taking:
            raise AssertionError("the lock was given")
    return raised.value


@contextmanager
def noted(process: MemoryProcess, name: str = "before_cursor_execute") -> Iterator[list[Any]]:
    """Note what a process does in the database."""
    engine = process.engine.sync_engine
    notes: list[Any] = []

    def note(*arguments: Any) -> None:
        notes.append(arguments)

    event.listen(engine, name, note)
    try:
        yield notes
    finally:
        event.remove(engine, name, note)


async def ends_of(engine: AsyncEngine) -> list[int]:
    async with reading(engine) as connection:
        return list(await connection.scalars(select(claims.c.ends_at_ms)))


async def test_writers_come_in_the_order_in_which_they_asked(
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


async def test_five_read_at_once_and_the_others_after_them_in_order(
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


async def test_readers_and_the_writer_do_not_wait_for_each_other(
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


async def test_locks_on_two_memories_have_nothing_to_do_with_each_other(
    start: Start, record: MemoryRecord
) -> None:
    ours = start(HASTY)
    other = await ours.make("other")
    async with ours.locks.write_lock(record), ours.locks.write_lock(other):
        assert await ours.locks.being_written([record.id, other.id]) == {record.id, other.id}
    assert await ours.locks.being_written([record.id, other.id]) == set()


async def test_whoever_waits_too_long_is_told_to_try_again(
    start: Start, record: MemoryRecord
) -> None:
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


async def test_a_lock_that_nobody_holds_costs_a_commit_to_take_and_one_to_leave(
    ours: MemoryProcess, record: MemoryRecord
) -> None:
    for taking in (ours.locks.write_lock, ours.locks.read_lock):
        with noted(ours, "commit") as commits, noted(ours, "begin") as begins:
            async with taking(record):
                assert (len(begins), len(commits)) == (1, 1)
        assert (len(begins), len(commits)) == (2, 2)


async def test_who_waits_for_one_of_the_same_process_leaves_the_database_alone(
    start: Start, record: MemoryRecord
) -> None:
    ours = start(HASTY)
    async with ours.locks.write_lock(record):
        with noted(ours, "begin") as begins:
            await refusal(ours.locks.write_lock(record))
        # To make a claim, and to take it back.
        assert len(begins) == 2


async def test_only_the_foremost_of_a_process_looks_who_is_before_it(
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


async def test_each_holder_has_a_higher_number_than_any_before(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    fences = []
    for number in range(6):
        async with (ours, theirs)[number % 2].locks.write_lock(record) as lock:
            fences.append(lock.fence)
    assert fences == sorted(set(fences))


async def test_a_dead_holder_is_succeeded_and_can_commit_nothing(
    ours: MemoryProcess, theirs: MemoryProcess, start: Start, clock: Clock, record: MemoryRecord
) -> None:
    async with ours.locks.write_lock(record) as dead:
        clock.now_s += LEASE_S - 0.001
        hasty = start(HASTY)
        assert (
            await refusal(hasty.locks.write_lock(record))
        ).reason == errors_pb2.REASON_MEMORY_BUSY
        clock.now_s += 0.001
        async with theirs.locks.write_lock(record) as lock:
            assert lock.fence > dead.fence
            with pytest.raises(GatewayError) as raised:
                async with ours.locks.committing(dead):
                    raise AssertionError("a dead holder may commit")
            assert raised.value.reason == errors_pb2.REASON_CONFLICT
            async with theirs.locks.committing(lock) as (connection, stored):
                await theirs.repository.append(connection, stored, [turn(2, 2, "q", "a")])
            with pytest.raises(GatewayError):
                async with ours.locks.committing(replace(dead, fence=lock.fence)):
                    raise AssertionError("a number alone serves nobody")
    assert await ours.said(await ours.add(record, turn(3, 4, "more", "yes"))) == [
        *("hello", "hi", "q", "a", "more", "yes")
    ]


async def test_who_comes_back_from_the_dead_leaves_its_successor_alone(
    ours: MemoryProcess, theirs: MemoryProcess, start: Start, clock: Clock, record: MemoryRecord
) -> None:
    hasty = start(HASTY)
    async with AsyncExitStack() as successor:
        async with ours.locks.write_lock(record):
            clock.now_s += LEASE_S
            await successor.enter_async_context(theirs.locks.write_lock(record))
        refused = await refusal(hasty.locks.write_lock(record))
        assert refused.reason == errors_pb2.REASON_MEMORY_BUSY


async def test_who_died_while_waiting_holds_nobody_up(
    ours: MemoryProcess, theirs: MemoryProcess, clock: Clock, record: MemoryRecord
) -> None:
    room = Room(record)
    async with asyncio.TaskGroup() as tasks:
        async with ours.locks.write_lock(record):
            # A claim with no process behind it.
            dead = LockQueue(ours.engine, clock.source(), LEASE_S)
            await dead.enter(QueueKey(record.id, WRITE, 1), record.owner_id, "claim_dead")
            tasks.create_task(room.write(theirs, "theirs"))
            await until_waiting(ours.engine, 3)
        with noted(theirs) as looks:
            while len(looks) < 6:
                await count_all(ours.engine, claims)
        assert room.entered == []
        clock.now_s += LEASE_S
    assert room.entered == ["theirs"]


async def test_what_the_dead_have_left_is_cleared_away(
    ours: MemoryProcess, theirs: MemoryProcess, clock: Clock, record: MemoryRecord
) -> None:
    async with ours.locks.write_lock(record), ours.locks.read_lock(record):
        clock.now_s += LEASE_S
        async with theirs.locks.read_lock(record):
            assert await theirs.locks.remove_expired() == 2
            assert await count_all(theirs.engine, claims) == 1


async def test_who_lives_keeps_the_lock_for_as_long_as_it_likes(
    start: Start, clock: Clock, record: MemoryRecord
) -> None:
    ours, hasty = start(RENEWING), start(HASTY)
    async with ours.locks.write_lock(record) as lock:
        for _ in range(4):
            clock.now_s += RENEWING.lease_s * 0.9
            while await ends_of(hasty.engine) != [clock.now_ms + 50]:
                pass
        refused = await refusal(hasty.locks.write_lock(record))
        assert refused.reason == errors_pb2.REASON_MEMORY_BUSY
        assert not lock.lost.is_set()


async def test_a_process_renews_all_that_it_holds_at_once(
    start: Start, record: MemoryRecord
) -> None:
    ours = start(RENEWING)
    entities = [await ours.make(f"m{number}") for number in range(6)]
    async with AsyncExitStack() as held:
        for one in entities:
            await held.enter_async_context(ours.locks.write_lock(one))
        held_ids = set(await ids_of(ours.engine))
        with noted(ours) as statements:
            while not any(held_ids <= set(one[3]) for one in statements if _renews(one)):
                await count_all(ours.engine, claims)
    assert len(held_ids) == 6


def _renews(executed: tuple[Any, ...]) -> bool:
    return str(executed[2]).startswith("UPDATE memory_claims")


async def ids_of(engine: AsyncEngine) -> list[str]:
    async with reading(engine) as connection:
        return list(await connection.scalars(select(claims.c.id)))


async def test_who_has_lost_a_lock_is_told_and_refused(start: Start, record: MemoryRecord) -> None:
    ours, room = start(RENEWING), Room(record)
    async with ours.locks.write_lock(record) as lock:
        waiting = asyncio.create_task(room.write(ours, "next"))
        await until_waiting(ours.engine, 2)
        async with writing(ours.engine) as connection:
            await connection.execute(delete(claims).where(claims.c.id == lock.claim_id))
        await lock.lost.wait()
        with pytest.raises(GatewayError) as raised:
            async with ours.locks.committing(lock):
                raise AssertionError("what is lost may commit")
        assert raised.value.reason == errors_pb2.REASON_CONFLICT
        # Who waits behind it in this process need not wait for it to leave.
        await waiting


async def test_nobody_takes_over_in_the_middle_of_a_commit(
    ours: MemoryProcess, theirs: MemoryProcess, clock: Clock, record: MemoryRecord
) -> None:
    room = Room(record)
    async with asyncio.TaskGroup() as tasks, ours.locks.write_lock(record) as lock:
        async with ours.locks.committing(lock) as (connection, stored):
            clock.now_s += LEASE_S
            tasks.create_task(room.write(theirs, "theirs"))
            await ours.repository.append(connection, stored, [turn(2, 2, "q", "a")])
            # Time enough to come in, if there were a way.
            for _ in range(30):
                await ours.repository.current(record)
            assert room.entered == []
    assert room.entered == ["theirs"]
    assert await ours.said(stored) == ["hello", "hi", "q", "a"]


async def test_who_waits_for_a_memory_that_is_deleted_is_told(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    room = Room(record)
    async with ours.locks.write_lock(record) as lock:
        waiting = [asyncio.create_task(room.write(one, "late")) for one in (ours, theirs)]
        await until_waiting(ours.engine, 3)
        async with ours.locks.committing(lock) as (connection, stored):
            await ours.repository.delete(connection, stored)
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, GatewayError)
        assert outcome.reason == errors_pb2.REASON_CONFLICT
    for taking in (ours.locks.write_lock(record), ours.locks.read_lock(record)):
        assert (await refusal(taking)).reason == errors_pb2.REASON_CONFLICT


async def test_a_lock_that_cannot_be_given_back_ends_by_itself(
    ours: MemoryProcess,
    start: Start,
    clock: Clock,
    record: MemoryRecord,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.startswith("DELETE FROM memory_claims"):
            raise exc.OperationalError(statement, None, ConnectionError("gone"))

    event.listen(ours.engine.sync_engine, "before_cursor_execute", fail)
    async with ours.locks.write_lock(record):
        pass
    event.remove(ours.engine.sync_engine, "before_cursor_execute", fail)
    assert "a lock on a memory was left to expire" in caplog.messages
    hasty = start(HASTY)
    assert (await refusal(hasty.locks.write_lock(record))).reason == errors_pb2.REASON_MEMORY_BUSY
    clock.now_s += LEASE_S
    async with start(PATIENT).locks.write_lock(record):
        pass


async def test_a_lock_that_could_not_be_given_back_is_not_in_the_way_of_its_own_process(
    start: Start, record: MemoryRecord
) -> None:
    process = start(HASTY)

    def fail(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.startswith("DELETE FROM memory_claims"):
            raise exc.OperationalError(statement, None, ConnectionError("gone"))

    event.listen(process.engine.sync_engine, "before_cursor_execute", fail)
    async with process.locks.write_lock(record):
        pass
    event.remove(process.engine.sync_engine, "before_cursor_execute", fail)
    async with process.locks.write_lock(record):
        pass


async def _come_and_go(
    processes: list[MemoryProcess], record: MemoryRecord, calls: int, seed: int
) -> int:
    """Let calls come in, of which half are cancelled at some moment; give how many got in."""
    dice = random.Random(seed)
    loop = asyncio.get_running_loop()
    inside = {"write": 0, "read": 0}
    most = {"write": 1, "read": 5}
    entered = 0

    async def visit(process: MemoryProcess, mode: str, steps: int) -> None:
        nonlocal entered
        taking = process.locks.write_lock if mode == "write" else process.locks.read_lock
        async with taking(record):
            entered += 1
            inside[mode] += 1
            try:
                assert inside[mode] <= most[mode]
                for _ in range(steps):
                    await asyncio.sleep(0)
            finally:
                inside[mode] -= 1

    tasks = []
    for _ in range(calls):
        mode = dice.choice(["write", "read"])
        task = asyncio.create_task(visit(dice.choice(processes), mode, dice.randrange(50)))
        if dice.random() < 0.5:
            # Any moment is one to be cancelled at.
            loop.call_later(dice.expovariate(10), task.cancel)
        if dice.random() < 0.2:
            loop.call_soon(task.cancel)
        tasks.append(task)
        if dice.random() < 0.3:
            await asyncio.wait([dice.choice(tasks)])
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(one is None or isinstance(one, asyncio.CancelledError) for one in outcomes)
    assert sum(inside.values()) == 0
    return entered


async def test_whoever_is_cancelled_at_any_moment_leaves_nothing_behind(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    entered = await _come_and_go([ours, theirs], record, calls=120, seed=3)
    assert 20 < entered < 120
    assert await count_all(ours.engine, claims) == 0
    async with ours.locks.write_lock(record), theirs.locks.read_lock(record):
        pass


@pytest.mark.soak
async def test_thousands_who_are_cancelled_leave_nothing_behind(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    for seed in range(10, 15):
        await _come_and_go([ours, theirs], record, calls=400, seed=seed)
        assert await count_all(ours.engine, claims) == 0
