"""Fixtures: a clock that stands still, and a process with its memories."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.memory.storage.tables import claims
from tests.services.memory.builders import (
    Clock,
    MemoryProcess,
    count_all,
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def memory(engine: AsyncEngine, clock: Clock) -> AsyncIterator[MemoryProcess]:
    process = MemoryProcess(engine, clock)
    yield process
    await process.locks.close()
    assert await count_all(engine, claims) == 0
