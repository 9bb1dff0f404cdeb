"""Locks of processes that die, renewal, and locks that are lost."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.storage.database import reading, writing
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.tables import claims
from tests.manual_clock import ManualClock
from tests.services.memory.builders import MemoryProcess, count_all, turn, until_waiting
from tests.services.memory.locks.lock_helpers import (
    HASTY,
    LEASE_S,
    RENEWING,
    Room,
    Start,
    add_dead_claim,
    ends_of,
    noted,
    refusal,
)


async def test_fences_only_grow(
    ours: MemoryProcess, theirs: MemoryProcess, record: MemoryRecord
) -> None:
    fences = []
    for number in range(6):
        async with (ours, theirs)[number % 2].locks.write_lock(record) as lock:
            fences.append(lock.ticket)
    assert fences == sorted(set(fences))


async def test_expired_holder_is_succeeded_and_cannot_commit(
    ours: MemoryProcess,
    theirs: MemoryProcess,
    start: Start,
    clock: ManualClock,
    record: MemoryRecord,
) -> None:
    async with ours.locks.write_lock(record) as dead:
        clock.now_s += LEASE_S - 0.001
        hasty = start(HASTY)
        assert (
            await refusal(hasty.locks.write_lock(record))
        ).reason == errors_pb2.REASON_MEMORY_BUSY
        clock.now_s += 0.001
        async with theirs.locks.write_lock(record) as lock:
            assert lock.ticket > dead.ticket
            with pytest.raises(GatewayError) as raised:
                async with ours.locks.committing(dead):
                    raise AssertionError("a dead holder may commit")
            assert raised.value.reason == errors_pb2.REASON_CONFLICT
            async with theirs.locks.committing(lock) as (connection, stored):
                await theirs.repository.append(connection, stored, [turn(2, 2, "q", "a")])
            with pytest.raises(GatewayError):
                async with ours.locks.committing(replace(dead, ticket=lock.ticket)):
                    raise AssertionError("a number alone serves nobody")
    assert await ours.said(await ours.add(record, turn(3, 4, "more", "yes"))) == [
        *("hello", "hi", "q", "a", "more", "yes")
    ]


async def test_expired_holder_does_not_release_its_successors_lock(
    ours: MemoryProcess,
    theirs: MemoryProcess,
    start: Start,
    clock: ManualClock,
    record: MemoryRecord,
) -> None:
    hasty = start(HASTY)
    async with AsyncExitStack() as successor:
        async with ours.locks.write_lock(record):
            clock.now_s += LEASE_S
            await successor.enter_async_context(theirs.locks.write_lock(record))
        refused = await refusal(hasty.locks.write_lock(record))
        assert refused.reason == errors_pb2.REASON_MEMORY_BUSY


async def test_expired_waiter_does_not_block_others(
    ours: MemoryProcess, theirs: MemoryProcess, clock: ManualClock, record: MemoryRecord
) -> None:
    room = Room(record)
    async with asyncio.TaskGroup() as tasks:
        async with ours.locks.write_lock(record):
            await add_dead_claim(ours, record)
            tasks.create_task(room.write(theirs, "theirs"))
            await until_waiting(ours.engine, 3)
        with noted(theirs) as looks:
            while len(looks) < 6:
                await count_all(ours.engine, claims)
        assert room.entered == []
        clock.now_s += LEASE_S
    assert room.entered == ["theirs"]


async def test_expired_claims_are_removed(
    ours: MemoryProcess, theirs: MemoryProcess, clock: ManualClock, record: MemoryRecord
) -> None:
    async with ours.locks.write_lock(record), ours.locks.read_lock(record):
        clock.now_s += LEASE_S
        async with theirs.locks.read_lock(record):
            assert await theirs.locks.queue.remove_expired() == 2
            assert await count_all(theirs.engine, claims) == 1


async def test_renewed_lock_outlives_its_lease(
    start: Start, clock: ManualClock, record: MemoryRecord
) -> None:
    ours, hasty = start(RENEWING), start(HASTY)
    async with ours.locks.write_lock(record) as lock:
        for _ in range(4):
            clock.now_s += RENEWING.lease_s * 0.9
            while await ends_of(hasty.engine) != [clock.now_ms() + 50]:
                pass
        refused = await refusal(hasty.locks.write_lock(record))
        assert refused.reason == errors_pb2.REASON_MEMORY_BUSY
        assert not lock.lost.is_set()


async def test_process_renews_all_claims_together(start: Start, record: MemoryRecord) -> None:
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


async def test_lost_lock_is_signalled_and_cannot_commit(start: Start, record: MemoryRecord) -> None:
    ours, room = start(RENEWING), Room(record)
    async with ours.locks.write_lock(record) as lock:
        waiting = asyncio.create_task(room.write(ours, "next"))
        await until_waiting(ours.engine, 2)
        async with writing(ours.engine) as connection:
            await connection.execute(delete(claims).where(claims.c.id == lock.id))
        await lock.lost.wait()
        with pytest.raises(GatewayError) as raised:
            async with ours.locks.committing(lock):
                raise AssertionError("what is lost may commit")
        assert raised.value.reason == errors_pb2.REASON_CONFLICT
        # Who waits behind it in this process need not wait for it to leave.
        await waiting
