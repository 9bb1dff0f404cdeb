"""The gateway of the matrix; failures in what its tests call say what they compared."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.matrix.upstreams import Front, front

pytest.register_assert_rewrite(
    *(f"tests.matrix.{name}" for name in ("chat", "messages", "grpc_calls", "heard", "meaning"))
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def behind(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Front]:
    """Return a gateway with every upstream behind it."""
    async with front(tmp_path_factory.mktemp("gateway")) as one:
        yield one
