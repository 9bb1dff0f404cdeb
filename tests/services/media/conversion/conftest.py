"""A pool of one worker for all modules: its libraries and models are loaded once."""

import pytest_asyncio
from prometheus_client import CollectorRegistry

from services.common.settings import Limits
from services.media.conversion.pool import ConversionPool, PooledConverter


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def converter():
    pool = ConversionPool(Limits(max_parallel_conversions=1), CollectorRegistry())
    yield PooledConverter(pool, lambda: "someone")
    await pool.close()
