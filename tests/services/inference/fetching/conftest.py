from collections.abc import AsyncIterator

import pytest

from tests.services.inference.fetching.internet import Internet, internet


@pytest.fixture
async def net() -> AsyncIterator[Internet]:
    async with internet() as one:
        yield one
