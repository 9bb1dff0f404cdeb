"""Upper bounds on the round trips of a request to PostgreSQL, counted by a proxy."""

from pathlib import Path

from tests.databases import postgresql_server
from tests.e2e.users import User
from tests.gateway_in_process import running_gateway
from tests.hosts.database_work import Ask, kinds
from tests.hosts.round_trips import CountingProxy, counting_proxy

# docs/internals/capacity.md has these too. The first requests of a kind prepare their statements,
# and now and then one has to do what is done for many, such as writing their usage: the bounds are
# of the fewest round trips among some requests.
BOUNDS = {
    "chat": 0,
    "chat with memory": 14,
    "response, stored": 7,
    "  after another": 10,
    "upload of 10 KB": 6,
    "download": 1,
    "edit of a document": 5,
}
REQUESTS = 12


async def fewest(ask: Ask, proxy: CountingProxy) -> int:
    """Return the fewest round trips of some requests."""
    taken: list[int] = []
    for number in range(REQUESTS):
        before = proxy.round_trips
        assert (await ask(number)).status == 200
        taken.append(proxy.round_trips - before)
    return min(taken)


async def test_requests_take_few_round_trips(tmp_path: Path) -> None:
    with postgresql_server() as server:
        async with counting_proxy(server) as (proxy, url):
            storage = {"data_dir": str(tmp_path), "database_url": url}
            async with running_gateway(tmp_path, storage=storage) as gateway:
                user = User(gateway.http, gateway.url, gateway.key)
                asks = await kinds(user, user)
                taken = {kind: await fewest(asks[kind], proxy) for kind in BOUNDS}
    assert {kind: taken[kind] for kind in BOUNDS if taken[kind] > BOUNDS[kind]} == {}
