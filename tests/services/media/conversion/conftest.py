"""A pool for all modules, in which one worker runs: its libraries and models are loaded once."""

import pytest_asyncio
from prometheus_client import CollectorRegistry

from services.common.settings import Limits
from services.media.conversion.pool import ConversionPool, PooledConverter


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def converter():
    # Of two parallel conversions, one that runs alone has half of the processors: libraries with
    # several threads wait for each other by spinning, beside the other tests.
    pool = ConversionPool(Limits(max_parallel_conversions=2), CollectorRegistry())
    yield PooledConverter(pool, lambda: "someone")
    await pool.close()
