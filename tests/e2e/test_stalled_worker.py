"""A worker of `gateway up` whose event loop no longer runs."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import pytest

from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway
from tests.waiting import until

CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}
WORKER = "services.worker"
COUNTER = "gateway_replaced_workers_total{"
STALL = "\n[server]\nworker_stall_s = 10\n"


def workers(target: Gateway) -> Sequence[int]:
    return processes.running_module(processes.family(target.process.pid), WORKER)


async def replaced(target: Gateway, reason: str) -> bool:
    """Return whether one worker was replaced for a reason, and none for another."""
    async with aiohttp.ClientSession() as http, http.get(f"{target.metrics_url}/metrics") as answer:
        lines = [line for line in (await answer.text()).splitlines() if line.startswith(COUNTER)]
    return {line.split('"')[1]: float(line.split()[-1]) for line in lines} == {
        "died": float(reason == "died"),
        "stalled": float(reason == "stalled"),
    }


async def test_a_killed_worker_is_counted(tmp_path: Path) -> None:
    with gateway(tmp_path, 9, workers=2, settings=STALL) as target:
        assert await replaced(target, "none")
        os.kill(workers(target)[0], signal.SIGKILL)
        await until(lambda: replaced(target, "died"), every_s=0.1)


@pytest.mark.soak
async def test_a_stopped_worker_is_replaced_and_the_service_goes_on(tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer "}
    with gateway(tmp_path, 9, workers=2, settings=STALL) as target:
        stopped, other = workers(target)
        os.kill(stopped, signal.SIGSTOP)
        await until(lambda: not processes.is_running(stopped))
        target.process.wait_for('"end":"its event loop had stalled"')
        await until(lambda: len(workers(target)) == 2)
        headers["Authorization"] += target.key
        # A new connection each: either worker may accept it.
        for _ in range(20):
            async with (
                aiohttp.ClientSession(headers=headers) as http,
                http.post(f"{target.address}/beta/v1/chat/completions", json=CHAT) as response,
            ):
                assert response.status == 200, await response.text()
        assert stopped not in workers(target)
        assert processes.is_running(other)
        await until(lambda: replaced(target, "stalled"), every_s=0.1)
