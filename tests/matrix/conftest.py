"""The gateway of the matrix; failures in what its tests call say what they compared."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.matrix.upstreams import MatrixGateway, matrix_gateway

pytest.register_assert_rewrite(
    *(
        f"tests.matrix.{name}"
        for name in (
            "chat",
            "messages",
            "responses",
            "google",
            "grpc_calls",
            "sent_requests",
            "meaning",
        )
    )
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def target(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MatrixGateway]:
    """Return a gateway with every upstream behind it."""
    async with matrix_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one
