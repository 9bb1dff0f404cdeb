"""Fixtures: a clock that stands still, and a process that serves stored responses."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.services.memory.builders import Clock
from tests.services.memory.responses.response_server import ResponseProcess, response_process


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def service(engine: AsyncEngine, clock: Clock) -> AsyncIterator[ResponseProcess]:
    async with response_process(engine, clock) as process:
        yield process
