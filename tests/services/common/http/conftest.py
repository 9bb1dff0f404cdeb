"""A server that tests play, a client whose time they set, and the loops that both run on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import uvloop

from services.common import http
from tests.manual_clock import ManualClock
from tests.services.inference.providers.scripted_server import ScriptedServer, scripted_server


def pytest_asyncio_loop_factories(
    config: object, item: object
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run on the loop that the gateway runs on, and on Python's own, which says what is right."""
    return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as one:
        yield one


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def client(clock: ManualClock) -> AsyncIterator[http.Client]:
    async with http.Client(60, http.Proxies({}), monotonic=clock.monotonic, settle_s=0) as one:
        yield one
