"""Usage over `kill -9` of workers: what was answered is recorded once, at its exact cost."""

import asyncio
import itertools
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from services.common.money import decimal_dollars
from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.processes import Running, command
from tests.faults import actions
from tests.faults.upstream import fault_upstream
from tests.waiting import until

SOON_S = 60.0
WORKER = "services.worker"
CALLERS = 8
INPUT, OUTPUT = 123_457, 7_654_321  # picodollars a token
SETTINGS = """
[[models]]
name = "priced"
provider = "openai"
upstream = "quick"
price = { input = 0.123457, output = "7.654321" }

[usage]
write_every_s = 0.3
"""


class Spenders:
    """Callers, and what their answers must have cost.

    Attributes:
        costs: of the answers that came whole, by the ids of their requests.
        lost: requests without a whole answer, which may have been recorded.
    """

    def __init__(self, at: Gateway, http: aiohttp.ClientSession) -> None:
        self.at = at
        self.costs: dict[str, int] = {}
        self.lost = 0
        self._http = http

    async def ask(self, name: str, *, stream: bool) -> bool:
        """Ask once; return whether the answer came whole, and is one of `costs`."""
        body: dict[str, Any] = {
            "model": "priced",
            "messages": [{"role": "user", "content": "secret words"}],
            "fallback": "disabled",
            "stream": stream,
        }
        headers = {"authorization": f"Bearer {self.at.key}", "x-request-id": name}
        url = f"{self.at.address}/beta/v1/chat/completions"
        try:
            async with self._http.post(url, json=body, headers=headers) as answer:
                raw = await answer.read()
                if answer.status != 200 or (stream and b"data: [DONE]" not in raw):
                    raise aiohttp.ClientError
                self.costs[name] = -1 if stream else self._cost(await answer.json())
                return True
        except aiohttp.ClientError:
            self.lost += 1
            return False

    @staticmethod
    def _cost(answer: Any) -> int:
        usage = answer["usage"]
        return int(usage["prompt_tokens"] * INPUT + usage["completion_tokens"] * OUTPUT)

    async def ask_often(self, requests: int, kills: int) -> None:
        """Have so many requests answered, some at once, and kill a worker now and then."""
        numbers = iter(range(requests))
        due = [requests * (n + 1) // (kills + 1) for n in range(kills)]

        async def ask_on() -> None:
            for number in numbers:
                if number in due:
                    await self.kill()
                for attempt in itertools.count():
                    if await self.ask(f"usage-{number}-{attempt}", stream=number % 3 == 0):
                        break
                    await asyncio.sleep(0.1)  # until another worker listens

        async with asyncio.TaskGroup() as group:
            for _ in range(CALLERS):
                group.create_task(ask_on())

    async def kill(self) -> None:
        """Kill a worker, once there is one: those that were killed are being replaced."""

        def worker() -> int | None:
            family = processes.family(self.at.process.pid)
            try:
                return processes.of_modules(family, [WORKER]).get(WORKER)
            except FileNotFoundError:  # one has just ended
                return None

        os.kill(await until(worker, within_s=SOON_S, every_s=0.02), signal.SIGKILL)

    def rows(self, query: str) -> list[Any]:
        """Return rows of the database."""
        connection = sqlite3.connect(self.at.data_dir / "gateway.db")
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def recorded(self) -> dict[str, tuple[int, int, int]]:
        """Return how many records each request has, its cost and its attempts."""
        query = (
            "SELECT request_id, count(*), sum(cost_pusd), sum(attempts) FROM usage_records "
            "WHERE endpoint = 'chat' GROUP BY request_id"
        )
        return {row[0]: (row[1], row[2], row[3]) for row in self.rows(query)}


@asynccontextmanager
async def spending(folder: Path, workers: int) -> AsyncIterator[Spenders]:
    """Run a gateway over an upstream of the test's own."""
    async with (
        fault_upstream() as upstream,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0)) as http,
    ):
        upstream.plays("quick", actions.answers())
        port = int(upstream.url.rpartition(":")[2])
        running = gateway(folder, port, workers=workers, settings=SETTINGS)
        started = await asyncio.to_thread(running.__enter__)
        try:
            yield Spenders(started, http)
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)


async def spend(folder: Path, requests: int, kills: int) -> None:
    async with spending(folder, workers=2) as spenders:
        await spenders.ask_often(requests, kills)
        assert len(spenders.costs) == requests
        assert (spenders.lost > 0) == (kills > 0)
        await until(lambda: spenders.recorded().keys() >= spenders.costs.keys(), within_s=SOON_S)
    records = spenders.recorded()
    assert {count for count, *_ in records.values()} == {1}
    assert len(records) <= requests + spenders.lost
    if kills == 0:
        assert records.keys() == spenders.costs.keys()
    for name, cost in spenders.costs.items():
        assert cost in (-1, records[name][1])
    # A day, or two around midnight, has the sum of its records to the last digit.
    [(summed, requests_summed)] = spenders.rows(
        "SELECT sum(cost_pusd), sum(requests) FROM usage_days"
    )
    [(total, count)] = spenders.rows("SELECT sum(cost_pusd), sum(requests) FROM usage_records")
    assert (summed, requests_summed) == (total, count)
    assert os.listdir(spenders.at.data_dir / "usage") == []
    assert b"secret words" not in (spenders.at.data_dir / "gateway.db").read_bytes()


async def test_without_kills_all_is_recorded(tmp_path: Path) -> None:
    await spend(tmp_path, requests=60, kills=0)


async def test_usage_outlives_killed_workers(tmp_path: Path) -> None:
    await spend(tmp_path, requests=300, kills=3)


@pytest.mark.soak
async def test_ten_thousand_requests_and_thirty_kills(tmp_path: Path) -> None:
    await spend(tmp_path, requests=10_000, kills=30)


async def test_the_command_shows_what_was_spent(tmp_path: Path) -> None:
    async with spending(tmp_path, workers=1) as spenders:
        for number in range(3):
            assert await spenders.ask(f"usage-{number}", stream=False)
    environ = {
        "GATEWAY_CONFIG": str(tmp_path / "gateway.toml"),
        "GATEWAY_DATA_DIR": str(tmp_path / "var"),
    }
    total = sum(spenders.costs.values())
    arguments = [command("gateway"), "usage", "--by", "model", "--csv"]
    with Running(arguments, environ=environ, folder=tmp_path, is_forked=True) as process:
        shown = process.wait_for(r"^priced,,3,0,.*,(\S+)$")[1]
    assert Decimal(shown) == Decimal(decimal_dollars(total)) > 0
