"""The gateway that the parts of requests are tried at."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.surface.target import Target, surface_gateway


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def target(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Target]:
    """Return a gateway in front of a provider of each kind."""
    async with surface_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one
