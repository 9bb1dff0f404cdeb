"""Two hosts, started once; whoever kills one of them starts it again."""

from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from tests.hosts.cluster import Administrator, Cluster, running_cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("hosts")) as started:
        yield started


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as opened:
        yield opened


@pytest.fixture
def admin(cluster: Cluster, http: aiohttp.ClientSession) -> Administrator:
    """The administrator, through Envoy."""
    return Administrator(http, cluster.url)
