"""`kill -9` of a worker in the middle of a conversion: one request pays, and nothing is left."""

import asyncio
import base64
import io
import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from PIL import Image

from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway
from tests.services.media.conversion import papers
from tests.waiting import until

MODULE = "services.media.conversion.process"
PAUSE_S = 0.05  # between small requests: the processors are for the conversions
MANY = 40  # pages; to read all of them takes a while
SAYS = papers.LEFT.partition(".")[0]  # each of them
# Enough for whatever must happen; only a failing test waits so long.
SOON_S = 300.0


@pytest.fixture
def started(
    tmp_path: Path, upstream_port: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Gateway]:
    """A gateway whose temporary files have a folder of their own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    # One caller's conversions run beside each other, while a process is left for others.
    with gateway(
        tmp_path, upstream_port, settings="\n[limits]\nmax_parallel_conversions = 3\n"
    ) as running:
        yield running


def scan(pages: int) -> bytes:
    """Return a PDF whose pages are pictures of text."""
    page = Image.open(
        io.BytesIO(papers.rendered(papers.pdf(f"#set page(width: 14cm, height: 4cm)\n{SAYS}")))
    )
    more = [page] * (pages - 1)
    return papers.packed(page, "PDF", resolution=150, save_all=True, append_images=more)


def workers(front: Gateway) -> Sequence[int]:
    """Return the processes that convert."""
    return processes.running_module(processes.family(front.process.pid), MODULE)


def files(folder: Path) -> list[Path]:
    """Return the files in a folder, however deep."""
    return [path for path in folder.rglob("*") if path.is_file()]


class Caller:
    """Who asks a model that reads text alone."""

    def __init__(self, front: Gateway, http: aiohttp.ClientSession) -> None:
        self._address = f"{front.address}/beta/v1/chat/completions"
        self._headers = {
            "Authorization": f"Bearer {front.key}",
            "Content-Type": "application/json",
        }
        self._http = http

    async def ask(self, document: bytes = b"") -> tuple[int, Any]:
        content: list[Any] = [{"type": "text", "text": "What?"}]
        if document:
            data = f"data:application/pdf;base64,{base64.b64encode(document).decode()}"
            content.append({"type": "file", "file": {"filename": "a.pdf", "file_data": data}})
        body = {"model": "sandbox/text", "messages": [{"role": "user", "content": content}]}
        sent = io.BytesIO(json.dumps(body).encode())
        async with self._http.post(self._address, data=sent, headers=self._headers) as answer:
            return answer.status, await answer.json()

    async def chat(self, ends: asyncio.Event) -> set[int]:
        """Ask one small thing after the other, with a pause between; return the statuses."""
        statuses = set()
        while not ends.is_set():
            status, _ = await self.ask()
            statuses.add(status)
            with suppress(TimeoutError):
                await asyncio.wait_for(ends.wait(), PAUSE_S)
        return statuses


@pytest.mark.soak
async def test_a_killed_worker_costs_its_own_request_alone(
    started: Gateway, tmp_path: Path
) -> None:
    ends = asyncio.Event()
    async with (
        asyncio.timeout(SOON_S),
        aiohttp.ClientSession() as http,
        asyncio.TaskGroup() as tasks,
    ):
        caller = Caller(started, http)
        chatting = tasks.create_task(caller.chat(ends))
        long = tasks.create_task(caller.ask(scan(MANY)))
        worker = (await until(lambda: workers(started), within_s=SOON_S, every_s=0.05))[0]
        beside = tasks.create_task(caller.ask(papers.pdf("It is read meanwhile")))
        # Longer than to import what it needs: it reads pages.
        await until(lambda: processes.cpu_seconds([worker]) > 3, within_s=SOON_S, every_s=0.05)
        assert not long.done()
        os.kill(worker, signal.SIGKILL)
        status, body = await long
        other = await beside
        ends.set()
        small = await chatting
        again = await caller.ask(scan(1))
    assert (status, body["error"]["code"]) == (503, "unavailable")
    assert body["error"]["param"] == "messages[0].content[1]"
    assert body["error"]["message"].endswith("the conversion was interrupted; try again")
    assert other[0] == 200
    assert "It is read meanwhile" in str(other[1])
    assert small == {200}
    assert again[0] == 200
    text = again[1]["choices"][0]["message"]["content"]
    assert papers.recall(SAYS, text) > 0.9
    assert worker not in workers(started)
    assert os.listdir(tmp_path / "temporary") == []
    # What the two that were converted came to.
    assert len(files(started.data_dir / "conversions")) == 2
