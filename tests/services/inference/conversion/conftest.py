"""A pool of one worker for a whole module: its libraries are imported once."""

import pytest_asyncio
from prometheus_client import CollectorRegistry

from services.common.settings import Limits
from services.inference.conversion.pool import ConversionPool, PooledConverter


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def converter():
    pool = ConversionPool(Limits(max_parallel_conversions=1), CollectorRegistry())
    yield PooledConverter(pool, lambda: "someone")
    await pool.close()
