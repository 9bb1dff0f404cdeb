"""Hosts that are stopped one after the other under load, as at an upgrade: nobody notices."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from tests.e2e.users import User
from tests.hosts.callers import Caller
from tests.hosts.cluster import Administrator, Cluster, start_again
from tests.waiting import until

WRITERS = 3
ASKING = 24


async def test_a_graceful_stop_fails_no_request(cluster: Cluster, admin: Administrator) -> None:
    await stop_in_turn(cluster, admin, stops=1)


@pytest.mark.soak
async def test_nine_rolling_stops_fail_no_request(cluster: Cluster, admin: Administrator) -> None:
    served = await stop_in_turn(cluster, admin, stops=9, name="ada-nine")
    print(f"nine rolling stops: {served:,} requests, none failed")


async def stop_in_turn(
    cluster: Cluster, admin: Administrator, stops: int, name: str = "ada-rolling"
) -> int:
    """Stop hosts under load, and start them again; return how many requests were served."""
    user = await admin.user(name)
    async with asking(user) as answers, writing(user) as callers:
        for host in itertools.islice(itertools.cycle(cluster.hosts), stops):
            before = len(answers)
            await until(lambda before=before: len(answers) > before + 2 * ASKING, every_s=0.01)
            assert await asyncio.to_thread(host.process.stop) == 0
            await start_again(cluster, host)
            # As an orchestrator, which stops none before the last one is back.
            await until(lambda: cluster.all_are_healthy(admin.http), every_s=0.05)
    assert [answer for answer in answers if answer != "200"] == []
    for caller in callers:
        assert caller.failures == []
        await caller.check()
    return len(answers)


@asynccontextmanager
async def asking(user: User) -> AsyncIterator[list[str]]:
    """Ask without a pause, half of it streamed; yield the statuses, or what went wrong."""
    answers: list[str] = []
    ending = asyncio.Event()

    async def ask(number: int) -> None:
        while not ending.is_set():
            try:
                if number % 2:
                    assert "data: [DONE]" in await user.streamed_chat("streamed")
                    answers.append("200")
                else:
                    answers.append(str((await user.chat("whole")).status))
            except (aiohttp.ClientError, AssertionError) as error:
                answers.append(repr(error))

    running = [asyncio.create_task(ask(number)) for number in range(ASKING)]
    try:
        yield answers
    finally:
        ending.set()
        await asyncio.gather(*running)


@asynccontextmanager
async def writing(user: User) -> AsyncIterator[list[Caller]]:
    """Store, edit and talk without a pause."""
    ending = asyncio.Event()
    callers = [await Caller.open(f"rolling {number}", user) for number in range(WRITERS)]
    running = [asyncio.create_task(caller.run(ending)) for caller in callers]
    try:
        yield callers
    finally:
        ending.set()
        await asyncio.gather(*running)
