"""Three hosts, started once; whoever kills one of them starts it again."""

from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from tests.hosts.cluster import Administrator, Cluster, running_cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("hosts")) as started:
        yield started


@pytest.fixture(autouse=True)
def _shown_log(cluster: Cluster) -> Iterator[None]:
    """Print what the gateways log during a test; pytest shows it where the test fails.

    Transactions that wait for one another are an error of ours, whatever the callers see.
    """
    begin = [(host, host.process, len(host.process.output)) for host in cluster.hosts]
    yield
    for host, process, start in begin:
        # One that was killed has been started again, and says all anew.
        logged = host.process.output[start if host.process is process else 0 :]
        print(f"-- logged by {host.url}\n{logged[-20_000:]}")
        assert "deadlock detected" not in logged


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as opened:
        yield opened


@pytest.fixture
def admin(cluster: Cluster, http: aiohttp.ClientSession) -> Administrator:
    """The administrator, through Envoy."""
    return Administrator(http, cluster.url)
