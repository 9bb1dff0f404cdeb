"""Fixtures: a scripted server and the upstreams that call it."""

from collections.abc import AsyncIterator

import pytest

from services.common.http import Client
from tests.services.common.http.reference import ReferenceClient
from tests.services.inference.providers.scripted_server import (
    ScriptedUpstream,
    scripted_upstream,
)


@pytest.fixture(
    params=[lambda: Client(connect_timeout_s=60, settle_s=0), ReferenceClient],
    ids=["own", "aiohttp"],
)
async def here(request: pytest.FixtureRequest) -> AsyncIterator[ScriptedUpstream]:
    """An upstream through the gateway's client, and through the library's as a reference."""
    async with scripted_upstream(request.param()) as made:
        yield made
        assert made.live.count == 0, "every call that began is over"
