import pytest

from services.sandbox.upstream import serving


@pytest.fixture
async def upstream():
    async with serving() as running:
        yield running
