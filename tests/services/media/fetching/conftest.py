import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import uvloop

from tests.services.media.fetching.internet import Internet, internet


def pytest_asyncio_loop_factories(
    config: object, item: object
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run on the loop that the gateway runs on, and on Python's own."""
    return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def net() -> AsyncIterator[Internet]:
    async with internet() as one:
        yield one
