"""Another caller, in a process of its own so that an attack's own work does not slow it.

`python -m tests.attacks.prober` reads commands from standard input, one a line. At `PORT KEY PID`
it begins to ask the gateway on PORT, whose worker is the process PID, for `/healthz` and for a
chat every 20 ms, and writes a line once both have answered. At an empty line it stops and writes
its figures as JSON. At the end of the input it ends.

What it measures is what the thread of the worker's event loop computes while an answer is
awaited, less the time in which this process ran or waited for a processor, when the worker may
have computed for others after the answer had come. So, unlike the time until the answer, it
hardly depends on what else the machine does.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp

INTERVAL_S = 0.02
TIMEOUT_S = 30.0
_OWN = Path("/proc/self/schedstat")
_PROCESSORS = Path("/proc/stat")
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}


def p99(values: list[float]) -> float:
    """Return the 99th percentile of at least one value."""
    return sorted(values)[int(0.99 * (len(values) - 1))]


async def main() -> None:
    """Probe whatever gateway a command names, until standard input ends."""
    while command := await asyncio.to_thread(sys.stdin.readline):
        port, key, pid = command.split()
        figures = await _figures(f"http://127.0.0.1:{port}", key, Path(f"/proc/{pid}/schedstat"))
        print(json.dumps(figures), flush=True)


async def _figures(url: str, key: str, worker: Path) -> dict[str, object]:
    """Probe one gateway until standard input has a line; return the figures."""
    headers = {"Authorization": f"Bearer {key}"}
    failures: list[str] = []
    stopped = asyncio.Event()
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    # Chats go over a connection of their own, which the first one authenticates: another one may
    # make room for strangers just as a chat is sent on it, which is no failure of the gateway.
    async with (
        aiohttp.ClientSession(timeout=timeout) as http,
        aiohttp.ClientSession(timeout=timeout) as chatting,
    ):

        async def healthz() -> int:
            async with http.get(f"{url}/healthz") as response:
                return response.status

        async def chat() -> int:
            async with chatting.post(
                f"{url}/beta/v1/chat/completions", json=CHAT, headers=headers
            ) as response:
                await response.read()
                return response.status

        def computed_ms() -> float:
            """Return what the worker has computed, less the time when this process did not wait.

            Both are of main threads, since they began.
            """
            computed_ns = int(worker.read_bytes().split()[0])
            ran_ns, delayed_ns = map(int, _OWN.read_bytes().split()[:2])
            return (computed_ns - ran_ns - delayed_ns) / 1e6 - _stolen_ms()

        async def probe(name: str, ask: Callable[[], Awaitable[int]]) -> float:
            """Ask over and over; return the 99th percentile of the work before an answer."""
            work: list[float] = []
            while not (stopped.is_set() and work):
                before = computed_ms()
                try:
                    status = await ask()
                    if status != 200:
                        failures.append(f"{name}: {status}")
                except (aiohttp.ClientError, TimeoutError) as error:
                    failures.append(f"{name}: {error!r}")
                work.append(computed_ms() - before)
                await asyncio.sleep(INTERVAL_S)
            return p99(work)

        for ask in (healthz, chat):
            await ask()  # connects, and loads what a first request loads
        print("ready", flush=True)
        probes = [
            asyncio.create_task(probe(name, ask))
            for name, ask in (("healthz", healthz), ("chat", chat))
        ]
        await asyncio.to_thread(sys.stdin.readline)
        stopped.set()
        healthz_ms, chat_ms = await asyncio.gather(*probes)
    return {
        "healthz_p99_ms": healthz_ms,
        "chat_p99_ms": chat_ms,
        "failures": failures[:5],
    }


def _stolen_ms() -> float:
    """Return how long the processors of this virtual machine have served other machines."""
    with _PROCESSORS.open() as lines:
        return int(next(lines).split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    asyncio.run(main())
