"""Which connections serve another request, and when."""

import asyncio

from services.common import http
from tests.manual_clock import ManualClock
from tests.services.common.http.servers import ask
from tests.services.inference.providers.scripted_server import ScriptedServer


async def test_a_connection_long_idle_is_not_used_again(
    client: http.Client, server: ScriptedServer, clock: ManualClock
) -> None:
    server.plays(lambda c: c.answer(b"{}"))
    await ask(client, server.url)
    clock.now_s += 29
    await ask(client, server.url)
    assert server.connections == 1
    clock.now_s += 31
    await ask(client, server.url)
    assert server.connections == 2


async def test_a_new_connection_is_used_again_once_it_has_settled(
    server: ScriptedServer, clock: ManualClock
) -> None:
    """A second answer to the first request would come soon, and be taken for the next one's."""
    server.plays(lambda c: c.answer(b"{}"))
    async with http.Client(60, http.Proxies({}), monotonic=clock.monotonic) as client:
        for passed_s, connections in ((0.0, 1), (0.04, 2), (0.011, 2), (0.0, 2), (0.0, 2)):
            clock.now_s += passed_s
            await ask(client, server.url)
            assert server.connections == connections


async def test_the_connection_used_last_is_used_next(
    client: http.Client, server: ScriptedServer, clock: ManualClock
) -> None:
    """Those that are not needed any more become old."""
    server.plays(lambda c: c.answer(b"{}"))
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(ask(client, server.url))
    assert server.connections == 3
    for _ in range(3):
        clock.now_s += 20
        await ask(client, server.url)
    assert server.connections == 3
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(ask(client, server.url))
    assert server.connections == 4
