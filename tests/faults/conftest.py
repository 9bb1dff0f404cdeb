import asyncio
from collections.abc import Mapping

import pytest_asyncio

from tests.faults.clock import SkippingLoop
from tests.faults.scenario import Scenario, scenario


def pytest_asyncio_loop_factories(config, item) -> Mapping[str, type[asyncio.AbstractEventLoop]]:
    """Let the clock of the tests here skip what would be waited for, in one module excepted."""
    is_real = item.path.stem == "test_real_time"
    return {"loop": asyncio.SelectorEventLoop if is_real else SkippingLoop}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory):
    """Return a gateway before the fault upstream, one for a whole module."""
    async with scenario(tmp_path_factory.mktemp("gateway")) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module")
async def at(shared: Scenario):
    """Yield the scenario of a case, and check that the case leaves nothing behind."""
    yield shared
    await shared.settled()
    shared.upstream.forget()
