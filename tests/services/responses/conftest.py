"""Fixtures: a clock that stands still, and a process that serves stored responses."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.manual_clock import ManualClock
from tests.services.responses.response_server import ResponseProcess, response_process


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def service(engine: AsyncEngine, clock: ManualClock) -> AsyncIterator[ResponseProcess]:
    async with response_process(engine, clock) as process:
        yield process
