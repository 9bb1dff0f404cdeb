"""Fixtures: a clock that stands still, and a process with its memories."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.memory.storage.tables import claims
from tests.manual_clock import ManualClock
from tests.services.memory.builders import (
    MemoryProcess,
    count_all,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def memory(engine: AsyncEngine, clock: ManualClock) -> AsyncIterator[MemoryProcess]:
    process = MemoryProcess(engine, clock)
    yield process
    await process.locks.close()
    assert await count_all(engine, claims) == 0
