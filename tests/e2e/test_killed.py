"""`kill -9` of a worker under load: every call ends, the next succeed."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import orjson
import pytest

from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway
from tests.faults import actions
from tests.faults.upstream import FaultUpstream, fault_upstream
from tests.waiting import until

# Enough for whatever must happen; only a failing test waits so long.
SOON_S = 60.0
CHAT, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
FORMS = [(path, stream) for path in (CHAT, MESSAGES) for stream in (False, True)]
STREAMS = [(CHAT, True), (MESSAGES, True)]
OF_EACH = 4
WELL = (200, "")
LOST = "the connection was lost"
WORKER = "services.worker"


@dataclass
class ReceivedAnswer:
    """The answer that a caller received.

    Attributes:
        status: the HTTP status; 0 before.
        raw: the body, as far as it came.
        is_lost: whether the connection broke.
        began: set when the first word has come.
    """

    status: int = 0
    raw: bytes = b""
    is_lost: bool = False
    began: asyncio.Event = field(default_factory=asyncio.Event)

    def outcome(self) -> tuple[int, str]:
        """Return the status, and the failure that was told, or "" where it was none."""
        if self.is_lost:
            return self.status, LOST
        *_, last = self.raw.rpartition(b"data: ")
        if last.strip() == b"[DONE]":
            return self.status, ""
        error = orjson.loads(last).get("error")
        return self.status, error["code"] if error else ""


class Callers:
    """Who asks a gateway.

    Attributes:
        upstream: the only provider there is, whose models are called by what they do.
    """

    def __init__(self, at: Gateway, upstream: FaultUpstream, http: aiohttp.ClientSession) -> None:
        self.upstream = upstream
        self._at = at
        self._http = http
        upstream.plays("quick", actions.answers())
        upstream.plays("silent", actions.says_nothing())
        upstream.plays("half", actions.stalls())

    async def ask(
        self, path: str, model: str, stream: bool, heard: ReceivedAnswer
    ) -> ReceivedAnswer:
        """Ask, and listen to the end, whatever it is."""
        body = {
            "model": f"openai/{model}",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "Count."}],
            "stream": stream,
            "fallback": "disabled",
        }
        headers = {"x-api-key": self._at.key, "compat-version": "2023-06-01"}
        try:
            async with self._http.post(
                self._at.address + path, json=body, headers=headers
            ) as answer:
                heard.status = answer.status
                async for piece in answer.content.iter_any():
                    heard.raw += piece
                    heard.began.set()
        except aiohttp.ClientError:
            heard.is_lost = True
        return heard

    async def ask_on(self) -> set[tuple[int, str]]:
        """Ask one thing after the other until one fails; give all outcomes."""
        outcomes = {WELL}
        while outcomes == {WELL}:
            for path, stream in FORMS:
                outcomes.add((await self.ask(path, "quick", stream, ReceivedAnswer())).outcome())
        return outcomes

    async def until_ready(self) -> None:
        """Wait until the gateway says that requests can come."""
        await until(self._is_ready, within_s=SOON_S, every_s=0.02)

    async def all_is_well(self) -> None:
        """Check that requests of every form are answered."""
        asked = [
            self.ask(path, "quick", stream, ReceivedAnswer())
            for path, stream in FORMS
            for _ in range(OF_EACH)
        ]
        async with asyncio.timeout(SOON_S):
            for heard in await asyncio.gather(*asked):
                assert heard.outcome() == WELL

    async def live_calls(self) -> float:
        """Return how many calls at providers the services count."""
        async with self._http.get(f"{self._at.metrics_url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        (line,) = [one for one in lines if one.startswith("gateway_upstream_live_calls")]
        return float(line.split()[-1])

    def kill(self) -> None:
        """Kill the worker."""
        family = processes.family(self._at.process.pid)
        os.kill(processes.of_modules(family, [WORKER])[WORKER], signal.SIGKILL)

    async def _is_ready(self) -> bool:
        try:
            async with self._http.get(f"{self._at.address}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


@asynccontextmanager
async def calling(folder: Path) -> AsyncIterator[Callers]:
    """Run a gateway."""
    async with (
        fault_upstream() as upstream,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0)) as http,
    ):
        running = gateway(folder, int(upstream.url.rpartition(":")[2]))
        # Its providers are asked for their models meanwhile, by this very loop.
        started = await asyncio.to_thread(running.__enter__)
        try:
            callers = Callers(started, upstream, http)
            await callers.until_ready()
            yield callers
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)


@dataclass
class KilledCalls:
    """Callers whose process was killed, by the part of the answer that they received.

    Attributes:
        silent: those who had heard nothing.
        half: those who had heard some words.
        busy: those who asked one thing after the other.
    """

    silent: list[tuple[int, str]]
    half: list[tuple[int, str]]
    busy: set[tuple[int, str]]


async def kill(callers: Callers) -> KilledCalls:
    """Kill a worker that has calls of every kind in hand; every one of them ends."""
    upstream = callers.upstream
    upstream.seen.clear()
    silent = [(ReceivedAnswer(), *form) for form in FORMS for _ in range(OF_EACH)]
    half = [(ReceivedAnswer(), *form) for form in STREAMS for _ in range(OF_EACH)]
    async with asyncio.timeout(SOON_S), asyncio.TaskGroup() as group:
        busy = [group.create_task(callers.ask_on()) for _ in range(2)]
        for model, asked in (("silent", silent), ("half", half)):
            for heard, path, stream in asked:
                group.create_task(callers.ask(path, model, stream, heard))
        await until(lambda: len(upstream.asked("silent")) == len(silent), within_s=SOON_S)
        for heard, *_ in half:
            await heard.began.wait()
        callers.kill()
    return KilledCalls(
        [heard.outcome() for heard, *_ in silent],
        [heard.outcome() for heard, *_ in half],
        set.union(*(task.result() for task in busy)),
    )


@pytest.fixture
async def callers(tmp_path: Path) -> AsyncIterator[Callers]:
    async with calling(tmp_path) as ready:
        yield ready


async def test_a_killed_worker_ends_its_calls_and_is_replaced(callers: Callers) -> None:
    for _ in range(3):
        fallen = await kill(callers)
        assert set(fallen.silent) == {(0, LOST)}
        assert set(fallen.half) == {(200, LOST)}
        assert fallen.busy <= {WELL, (0, LOST), (200, LOST)}
        await until(lambda: not callers.upstream.busy, within_s=SOON_S)
        await callers.until_ready()
        assert await callers.live_calls() == 0
        await callers.all_is_well()


@pytest.mark.soak
async def test_nothing_hangs_however_often_a_worker_is_killed(callers: Callers) -> None:
    for _ in range(20):
        await kill(callers)
        await until(lambda: not callers.upstream.busy, within_s=SOON_S)
        await callers.until_ready()
        assert await callers.live_calls() == 0
        await callers.all_is_well()
