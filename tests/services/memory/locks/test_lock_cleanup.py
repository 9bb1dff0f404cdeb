"""Locks on deleted memories, locks that cannot be released, and cancelled callers."""

import asyncio
import random
from typing import Any

import pytest
from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.quota import delete_memory
from services.memory.storage.tables import claims
from tests.engine_events import EXECUTES, listening
from tests.manual_clock import ManualClock
from tests.services.memory.builders import MemoryProcess, count_all, turn, until_waiting
from tests.services.memory.locks.lock_helpers import HASTY, LEASE_S, PATIENT, Room, Start, refusal


async def test_claim_cannot_be_removed_during_a_commit(
    ours: MemoryProcess, theirs: MemoryProcess, clock: ManualClock, record: MemoryRecord
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


async def test_a_commit_frees_the_lock_before_its_call_ends(
    ours: MemoryProcess, start: Start, record: MemoryRecord
) -> None:
    async def append(connection: AsyncConnection, stored: MemoryRecord) -> None:
        await ours.repository.append(connection, stored, [turn(2, 2, "q", "a")])

    room = Room(record)
    async with asyncio.TaskGroup() as tasks, ours.locks.write_lock(record) as lock:
        waiting = tasks.create_task(room.write(ours, "ours"))
        await until_waiting(ours.engine, 2)
        await ours.locks.commit(lock, append)
        await waiting
        async with start(HASTY).locks.write_lock(record):
            assert room.entered == ["ours"]


async def test_waiter_for_a_deleted_memory_gets_conflict(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    room = Room(record)
    async with ours.locks.write_lock(record) as lock:
        waiting = [asyncio.create_task(room.write(one, "late")) for one in (ours, theirs)]
        await until_waiting(ours.engine, 3)
        async with ours.locks.committing(lock) as (connection, stored):
            await delete_memory(connection, stored)
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, GatewayError)
        assert outcome.reason == errors_pb2.REASON_CONFLICT
    for taking in (ours.locks.write_lock(record), ours.locks.read_lock(record)):
        assert (await refusal(taking)).reason == errors_pb2.REASON_CONFLICT


async def test_claim_that_cannot_be_released_expires(
    ours: MemoryProcess,
    start: Start,
    clock: ManualClock,
    record: MemoryRecord,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
        if statement.startswith("DELETE FROM memory_claims"):
            raise exc.OperationalError(statement, None, ConnectionError("gone"))

    with listening(ours.engine, EXECUTES, fail):
        async with ours.locks.write_lock(record):
            pass
    assert "the lock of a memory could not be released and will expire" in caplog.messages
    hasty = start(HASTY)
    assert (await refusal(hasty.locks.write_lock(record))).reason == errors_pb2.REASON_MEMORY_BUSY
    clock.now_s += LEASE_S
    async with start(PATIENT).locks.write_lock(record):
        pass


async def test_unreleased_claim_does_not_block_its_own_process(
    start: Start, record: MemoryRecord
) -> None:
    process = start(PATIENT)

    def fail(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
        if statement.startswith("DELETE FROM memory_claims"):
            raise exc.OperationalError(statement, None, ConnectionError("gone"))

    with listening(process.engine, EXECUTES, fail):
        async with process.locks.write_lock(record):
            pass
    async with process.locks.write_lock(record):
        pass


async def _come_and_go(
    processes: list[MemoryProcess], record: MemoryRecord, calls: int, seed: int
) -> int:
    """Let calls come in, of which half are cancelled at some moment; return how many got in."""
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


async def test_cancelled_callers_leave_no_claims(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    entered = await _come_and_go([ours, theirs], record, calls=120, seed=3)
    assert 20 < entered < 120
    assert await count_all(ours.engine, claims) == 0
    async with ours.locks.write_lock(record), theirs.locks.read_lock(record):
        pass


@pytest.mark.soak
async def test_thousands_of_cancelled_callers_leave_no_claims(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    for seed in range(10, 15):
        await _come_and_go([ours, theirs], record, calls=400, seed=seed)
        assert await count_all(ours.engine, claims) == 0
