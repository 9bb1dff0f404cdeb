import pytest

from tests.upstream.app import serving


@pytest.fixture
async def upstream():
    async with serving() as running:
        yield running
