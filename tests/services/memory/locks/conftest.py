"""Fixtures: processes that share a database, and a memory."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.memory.locks.locks import LockLimits
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.tables import claims
from tests.manual_clock import ManualClock
from tests.services.memory.builders import MemoryProcess, count_all
from tests.services.memory.locks.lock_helpers import PATIENT, Start


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def start(storage: Storage, engine: AsyncEngine, clock: ManualClock) -> AsyncIterator[Start]:
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
