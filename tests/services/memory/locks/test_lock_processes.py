"""Locks among real processes on one database, some of which are killed."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.process.registry import ProcessRegistry
from services.common.settings import Storage
from services.memory.assembly import open_queue
from services.memory.jobs.stores import Stores
from services.memory.jobs.windows import Windows
from services.memory.locks.locks import LockLimits, MemoryLocks
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.tables import claims
from services.memory.turns.opened_memory import OpenedMemory
from tests.services.memory.builders import QUOTA, count_all, text_of, turn, until_waiting
from tests.services.memory.lock_holder import (
    LONG_LEASE_S,
    NAME,
    OWNER,
    SHORT_LEASE_S,
    lock_holder_process,
)

_WRITERS = (25, 25)


class Parent:
    """This process, beside the others."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.stores = Stores.open(engine, Clock(), open_queue(engine, Clock()))
        self.repository = self.stores.repository
        self.locks = MemoryLocks(engine, Clock(), LockLimits(wait_s=60))

    async def write(self, text: str) -> None:
        memory = OpenedMemory(self.stores, OWNER, NAME, QUOTA, Windows())
        async with (
            self.locks.opened(memory) as lock,
            self.locks.committing(lock) as (connection, stored),
        ):
            written = turn(stored.turns + 1, stored.messages, text, f"{lock.ticket}")
            await self.repository.append(connection, stored, [written])

    async def said(self) -> tuple[list[str], list[int]]:
        """Return what was said in each turn, and the number of the lock it was said under."""
        record = await self.repository.find(OWNER, NAME)
        assert isinstance(record, MemoryRecord)
        turns = await self.repository.turns(record.id, 1, record.turns)
        assert [one.number for one in turns] == list(range(1, record.turns + 1))
        return (
            [text_of(one.messages[0]) for one in turns],
            [int(text_of(one.messages[1])) for one in turns],
        )


@pytest.fixture
async def parent(engine: AsyncEngine) -> AsyncIterator[Parent]:
    parent = Parent(engine)
    await parent.write("first")
    yield parent
    await parent.locks.close()


async def test_fifty_writers_in_several_processes_are_serialized(
    storage: Storage, parent: Parent
) -> None:
    async with AsyncExitStack() as running:
        processes = [
            await running.enter_async_context(
                lock_holder_process(storage, f"p{place}", LONG_LEASE_S, "write", str(calls))
            )
            for place, calls in enumerate(_WRITERS)
        ]
        assert [await process.wait() for process in processes] == [0] * len(_WRITERS)
    texts, fences = await parent.said()
    expected = {f"p{place}/{n}" for place, calls in enumerate(_WRITERS) for n in range(calls)}
    assert len(texts) == 51
    assert set(texts) == {"first"} | expected
    assert fences == sorted(set(fences))
    assert await count_all(parent.engine, claims) == 0


async def test_processes_that_are_killed_leave_the_memory_to_others(
    storage: Storage, parent: Parent
) -> None:
    async with lock_holder_process(storage, "held", SHORT_LEASE_S, "hold") as held:
        assert held.stdout is not None
        assert await held.stdout.readline() == b"held\n"
        async with lock_holder_process(storage, "waits", SHORT_LEASE_S, "hold") as waits:
            await until_waiting(parent.engine, 2)
            waits.kill()
            held.kill()
            await asyncio.gather(waits.wait(), held.wait())
    assert await count_all(parent.engine, claims) == 2
    await parent.write("second")
    assert (await parent.said())[0] == ["first", "second"]
    assert await count_all(parent.engine, claims) == 0


# Of a process on another machine nobody can tell whether it lives.
@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
async def test_lock_of_killed_local_process_is_free_at_once(
    storage: Storage, parent: Parent
) -> None:
    processes = ProcessRegistry.register(storage.data_dir)
    parent.locks = MemoryLocks(parent.engine, Clock(), LockLimits(wait_s=30), processes)
    async with lock_holder_process(storage, "held", LONG_LEASE_S, "hold") as held:
        assert held.stdout is not None
        assert await held.stdout.readline() == b"held\n"
        writing = asyncio.create_task(parent.write("second"))
        await until_waiting(parent.engine, 2)
        held.kill()
        await writing
    assert (await parent.said())[0] == ["first", "second"]
    processes.unregister()


@pytest.mark.soak
async def test_killed_writers_lose_no_acknowledged_turn(storage: Storage, parent: Parent) -> None:
    dice = random.Random(5)
    acknowledged: list[str] = []

    async def live_and_die(place: int) -> None:
        for life in range(8):
            async with lock_holder_process(
                storage, f"p{place}.{life}", SHORT_LEASE_S, "on"
            ) as process:
                # Any moment of a write is a moment to die.
                for _ in range(dice.randint(1, 12)):
                    acknowledged.append((await process.stdout.readline()).decode().strip())
                await asyncio.sleep(dice.uniform(0, 0.05))
                process.kill()
                acknowledged.extend((await process.stdout.read()).decode().split())

    await asyncio.gather(*(live_and_die(place) for place in range(3)))
    await parent.write("last")
    texts, fences = await parent.said()
    assert len(texts) == len(set(texts))
    assert set(acknowledged) <= set(texts)
    assert fences == sorted(set(fences))
