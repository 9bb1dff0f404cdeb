"""A host that is killed under load, and comes back."""

import asyncio
import time

import pytest

from tests.e2e.users import User
from tests.hosts.callers import RETRIABLE, Caller
from tests.hosts.cluster import Administrator, Cluster, Host, start_again
from tests.waiting import until

CALLERS = 6
# Long before the minutes that a connection may take to be found dead, on a busy machine too.
SOON_S = 30.0


async def test_a_killed_host_costs_a_caller_one_request_at_most(
    cluster: Cluster, admin: Administrator
) -> None:
    await kill_under_load(cluster, admin, cluster.hosts[0])


@pytest.mark.soak
async def test_twenty_killed_hosts_lose_nothing(cluster: Cluster, admin: Administrator) -> None:
    for number in range(20):
        await kill_under_load(cluster, admin, cluster.hosts[number % 2], f"ada-{number}")


async def kill_under_load(
    cluster: Cluster, admin: Administrator, host: Host, name: str = "ada"
) -> None:
    """Kill a host while callers write; check what they saw and have, and start it again."""
    ending = asyncio.Event()
    user = await admin.user(name)
    callers = [await Caller.open(f"caller {number}", user) for number in range(CALLERS)]
    running = [asyncio.create_task(caller.run(ending)) for caller in callers]

    async def all_began_after(moment: float, rounds: int = 1) -> None:
        def have_finished() -> bool:
            assert not any(task.done() for task in running), running
            return all(
                sum(began > moment for began in caller.began_at) >= rounds for caller in callers
            )

        await until(have_finished, every_s=0.01)

    await all_began_after(0.0, rounds=3)
    host.kill()
    killed_at = time.monotonic()
    await all_began_after(killed_at)
    recovered_s = time.monotonic() - killed_at
    await start_again(cluster, host)
    await all_began_after(time.monotonic(), rounds=3)
    ending.set()
    await asyncio.gather(*running)
    for caller in callers:
        assert len(caller.failures) <= 1, caller.failures
        assert {one.status for one in caller.failures} <= RETRIABLE, caller.failures
        await caller.check()
    assert recovered_s < SOON_S


async def test_a_memory_that_a_killed_host_held_is_free_soon(
    cluster: Cluster, admin: Administrator
) -> None:
    host, other = cluster.hosts
    key = await admin.key("holder", concurrent_requests=2)
    there, here = (User(admin.http, one.url, key) for one in (host, other))
    assert (await there.chat("first", memory_id="held")).status == 200
    # Both requests that this key may have under way, one of which holds the memory.
    lost = [
        asyncio.create_task(
            there.chat("lost", model="sandbox/stall", fallback="disabled", **fields)
        )
        for fields in ({"memory_id": "held"}, {})
    ]

    async def is_full() -> bool:
        return (await here.chat("another")).status == 429

    await until(is_full, every_s=0.05)
    host.kill()
    killed_at = time.monotonic()
    await asyncio.gather(*lost, return_exceptions=True)

    async def is_served() -> bool:
        return (await here.chat("second", memory_id="held")).status == 200

    await until(is_served, every_s=0.05)
    recovered_s = time.monotonic() - killed_at
    await start_again(cluster, host)
    assert await here.turns("held") == ["first", "second"]
    assert recovered_s < SOON_S
