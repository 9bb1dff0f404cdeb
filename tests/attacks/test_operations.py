"""Operational endpoints requested on the public port, and the state after a kill."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from tests.attacks.observer import Observer
from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway
from tests.grid import each_row
from tests.waiting import until

NOBODY = 9  # a port on which no provider listens
PROXIED = [
    {},
    {"X-Forwarded-For": "127.0.0.1"},
    {"X-Forwarded-For": "8.8.8.8", "X-Real-IP": "127.0.0.1"},
    {"Forwarded": "for=127.0.0.1"},
]


@each_row("headers", PROXIED)
@each_row("path", ["/metrics", "/metrics/", "/%6detrics", "//metrics", "/./metrics"])
async def test_metrics_are_nowhere_that_strangers_ask(
    target: Gateway, path: str, headers: dict[str, str]
) -> None:
    url = URL(f"{target.address}{path}", encoded=True)
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as answer:
        assert answer.status == 404
        assert (await answer.json())["error"]["code"] == "unknown_path"


@pytest.mark.parametrize("query", ["verbose", "verbose=1", "%76erbose", "a=1&verbose", "verbose#"])
async def test_readiness_shows_strangers_no_details(target: Gateway, query: str) -> None:
    url = URL(f"{target.address}/readyz?{query}", encoded=True)
    async with aiohttp.ClientSession() as http, http.get(url) as answer:
        assert (answer.status, await answer.json()) == (200, {"status": "ready"})


async def test_they_are_on_a_listener_of_their_own(target: Gateway, observer: Observer) -> None:
    async with aiohttp.ClientSession() as http, observer.watch() as measured:
        for _ in range(50):
            async with http.get(f"{target.metrics_url}/metrics") as answer:
                assert answer.status == 200
                assert "gateway_http_requests_total" in await answer.text()
        async with http.get(f"{target.metrics_url}/readyz?verbose") as answer:
            assert (await answer.json())["services"] == "serving"
    measured.assert_harmless()


@pytest.fixture
async def doomed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Gateway, Path]]:
    """Run a gateway with a folder for temporary files of its own."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    starting = gateway(tmp_path, NOBODY, workers=2)
    started = await asyncio.to_thread(starting.__enter__)
    yield started, temporary
    await asyncio.to_thread(starting.__exit__, None, None, None)


async def test_a_killed_supervisor_leaves_nothing_behind(
    doomed: tuple[Gateway, Path], tmp_path: Path
) -> None:
    target, temporary = doomed
    family = processes.family(target.process.pid)
    assert len(family) == 3
    os.kill(target.process.pid, signal.SIGKILL)
    await until(lambda: not any(map(processes.is_running, family)))
    assert list(temporary.iterdir()) == []
    # The next one clears what is in the data folder.
    with gateway(tmp_path, NOBODY) as again:
        names = {one.name for one in (again.data_dir / "run").iterdir()}
        assert names == {"0.sock", "metrics"}
        counters = (again.data_dir / "run" / "metrics").iterdir()
        assert not {str(pid) for pid in family} & {one.stem.rpartition("_")[2] for one in counters}
    assert not (tmp_path / "var" / "run").exists()
