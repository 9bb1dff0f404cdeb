"""Limits over `kill -9` of workers: never more than the limit, and slots come back."""

import asyncio
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.processes import command
from tests.faults import actions
from tests.faults.upstream import FaultUpstream, fault_upstream
from tests.waiting import until

SOON_S = 30.0
WORKER = "services.worker"
REQUESTS, LIMIT = 1_000, 100
MINUTE_S = 60
# What is left of a minute has to be enough for all requests, on a machine that is busy too.
ENOUGH_S = 25
SLOT_LEASE_S = 10
SETTINGS = f"""
[limits]
identify_cache_s = 1
slot_lease_s = {SLOT_LEASE_S}
"""


class Callers:
    """Callers of a gateway, and what became of their requests.

    Attributes:
        at: the gateway.
        upstream: counts the requests that passed.
    """

    def __init__(self, at: Gateway, upstream: FaultUpstream, http: aiohttp.ClientSession) -> None:
        self.at = at
        self.upstream = upstream
        self._http = http

    async def ask(self, model: str = "openai/quick", **fields: Any) -> int:
        """Ask once; return the status of the answer, or 0 if none came."""
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "user", "content": "Hello"}],
            "fallback": "disabled",
            **fields,
        }
        headers = {"authorization": f"Bearer {self.at.key}"}
        url = f"{self.at.address}/beta/v1/chat/completions"
        try:
            async with self._http.post(url, json=body, headers=headers) as answer:
                await answer.read()
                return answer.status
        except aiohttp.ClientError:
            return 0

    async def stream(self, model: str, **fields: Any) -> AsyncIterator[bytes]:
        """Ask for a stream; yield its pieces as they arrive, from the first content on."""
        body = {
            "model": model,
            "messages": [{"role": "user", "content": "Hello"}],
            "fallback": "disabled",
            "stream": True,
            **fields,
        }
        headers = {"authorization": f"Bearer {self.at.key}"}
        url = f"{self.at.address}/beta/v1/chat/completions"
        async with self._http.post(url, json=body, headers=headers) as answer:
            assert answer.status == 200
            head = b""
            async for piece in answer.content.iter_any():
                head += piece
                if b'"content":"' in head:
                    yield head
                    head = b""
            yield head

    async def get(self, path: str) -> Any:
        """Return the JSON at a path."""
        headers = {"authorization": f"Bearer {self.at.key}"}
        async with self._http.get(self.at.address + path, headers=headers) as answer:
            assert answer.status == 200
            return await answer.json()

    def passed(self, model: str = "quick") -> int:
        """Return how many requests have reached the provider."""
        return len(self.upstream.asked(model))

    def workers(self) -> Sequence[int]:
        """Return the processes of the workers."""
        return processes.running_module(processes.family(self.at.process.pid), WORKER)

    async def limit(self, **limits: str | int) -> None:
        """Set the limits of the key, and wait until all workers have heard of them."""
        options = [f"--{name.replace('_', '-')}={limit}" for name, limit in limits.items()]
        environ = {**os.environ, "GATEWAY_DATA_DIR": str(self.at.data_dir)}
        arguments = [command("gateway"), "limits", "set", "--key", self.at.key, *options]
        await asyncio.to_thread(subprocess.run, arguments, env=environ, check=True)


@asynccontextmanager
async def limited(folder: Path, settings: str = "", **limits: str | int) -> AsyncIterator[Callers]:
    """Run a gateway of two workers over an upstream of the test's own."""
    connector = aiohttp.TCPConnector(force_close=True, limit=200)
    async with fault_upstream() as upstream, aiohttp.ClientSession(connector=connector) as http:
        upstream.plays("quick", actions.answers())
        port = int(upstream.url.rpartition(":")[2])
        running = gateway(folder, port, workers=2, settings=SETTINGS + settings)
        started = await asyncio.to_thread(running.__enter__)
        try:
            callers = Callers(started, upstream, http)
            await callers.limit(**limits)
            yield callers
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)


async def begun_minute() -> int:
    """Return the minute, once enough of it is left."""
    await until(lambda: time.time() % MINUTE_S < MINUTE_S - ENOUGH_S, every_s=0.1)
    return int(time.time() // MINUTE_S)


@pytest.mark.soak
async def test_of_1000_requests_at_once_100_pass(tmp_path: Path) -> None:
    async with limited(tmp_path, requests_per_minute=LIMIT) as callers:
        minute = await begun_minute()
        statuses = Counter(await asyncio.gather(*(callers.ask() for _ in range(REQUESTS))))
        assert int(time.time() // MINUTE_S) == minute
        assert statuses == {200: LIMIT, 429: REQUESTS - LIMIT}
        assert callers.passed() == LIMIT


@pytest.mark.soak
async def test_killed_workers_let_no_more_pass(tmp_path: Path) -> None:
    async with limited(tmp_path, requests_per_minute=LIMIT) as callers:
        minute = await begun_minute()
        asking = asyncio.gather(*(callers.ask() for _ in range(REQUESTS)))
        await until(lambda: callers.passed() >= LIMIT // 4)
        os.kill(callers.workers()[0], signal.SIGKILL)
        statuses = Counter(await asking)
        # The worker that comes in its place has no more than is left either.
        await until(lambda: len(callers.workers()) == 2, within_s=SOON_S)
        statuses += Counter(await asyncio.gather(*(callers.ask() for _ in range(REQUESTS))))
        assert int(time.time() // MINUTE_S) == minute
        assert statuses[0] > 0
        assert LIMIT // 4 <= callers.passed() <= LIMIT
        assert statuses[200] <= callers.passed()


@pytest.mark.soak
async def test_slots_of_killed_workers_come_back(tmp_path: Path) -> None:
    async with limited(tmp_path, concurrent_requests=1) as callers:
        callers.upstream.plays("slow", actions.says_nothing())
        hanging = asyncio.create_task(callers.ask("openai/slow"))
        await until(lambda: callers.passed("slow") == 1, within_s=SOON_S)
        assert await callers.ask() == 429
        for worker in callers.workers():
            os.kill(worker, signal.SIGKILL)
        killed_at = time.monotonic()
        assert await hanging == 0
        seen = [await until(callers.ask, within_s=SOON_S)]
        while seen[-1] != 200:
            assert time.monotonic() < killed_at + SLOT_LEASE_S + SOON_S
            await asyncio.sleep(0.1)
            seen.append(await callers.ask())
        assert 429 in seen
