"""What a killed host held, at the others."""

import asyncio
import time

from tests.e2e.users import User
from tests.hosts.cluster import Administrator, Cluster, start_again
from tests.waiting import until

# Long before the minutes that a connection may take to be found dead, on a busy machine too.
SOON_S = 30.0


async def test_a_memory_that_a_killed_host_held_is_free_soon(
    cluster: Cluster, admin: Administrator
) -> None:
    host, other = cluster.hosts[:2]
    key = await admin.key("holder", concurrent_requests=2)
    there, here = (User(admin.http, one.url, key) for one in (host, other))
    assert (await there.chat("first", memory_id="held")).status == 200

    async def stall(**fields: str) -> None:
        # Asked again when `is_full` took the place that was left.
        while (
            await there.chat("lost", model="sandbox/stall", fallback="disabled", **fields)
        ).status == 429:
            pass

    # Both requests that this key may have under way, one of which holds the memory.
    lost = [asyncio.create_task(stall(**fields)) for fields in ({"memory_id": "held"}, {})]

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
