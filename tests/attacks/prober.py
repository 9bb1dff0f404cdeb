"""Another caller, in a process of its own so that an attack's own work does not slow it.

`python -m tests.attacks.prober` reads commands from standard input, one a line. At `PORT KEY`
it begins to ask the gateway on PORT for `/healthz` and for a chat every 20 ms, and a server
without any work as well, and writes a line once all have answered. At an empty line it stops
and writes its figures as JSON. At the end of the input it ends.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

import aiohttp
from aiohttp import web

INTERVAL_S = 0.02
TIMEOUT_S = 30.0
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}


def p99(values: list[float]) -> float:
    """Return the 99th percentile of at least one value."""
    return sorted(values)[int(0.99 * (len(values) - 1))]


async def main() -> None:
    """Probe whatever gateway a command names, until standard input ends."""
    runner = web.ServerRunner(web.Server(_ok))
    await runner.setup()
    control = web.TCPSite(runner, "127.0.0.1", 0)
    await control.start()
    control_url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    while command := await asyncio.to_thread(sys.stdin.readline):
        port, key = command.split()
        print(json.dumps(await _figures(f"http://127.0.0.1:{port}", key, control_url)), flush=True)
    await runner.cleanup()


async def _figures(url: str, key: str, control_url: str) -> dict[str, object]:
    """Probe one gateway until standard input has a line; return the figures."""
    headers = {"Authorization": f"Bearer {key}"}
    failures: list[str] = []
    stopped = asyncio.Event()
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as http:

        async def healthz() -> int:
            async with http.get(f"{url}/healthz") as response:
                return response.status

        async def chat() -> int:
            async with http.post(
                f"{url}/beta/v1/chat/completions", json=CHAT, headers=headers
            ) as response:
                await response.read()
                return response.status

        async def idle() -> int:
            async with http.get(control_url) as response:
                return response.status

        async def probe(name: str, ask: Callable[[], Awaitable[int]]) -> float:
            """Ask over and over; return the 99th percentile in milliseconds."""
            times: list[float] = []
            while not (stopped.is_set() and times):
                began = time.perf_counter()
                try:
                    status = await ask()
                    if status != 200:
                        failures.append(f"{name}: {status}")
                except (aiohttp.ClientError, TimeoutError) as error:
                    failures.append(f"{name}: {error!r}")
                times.append(1000 * (time.perf_counter() - began))
                await asyncio.sleep(INTERVAL_S)
            return p99(times)

        for ask in (healthz, chat, idle):
            await ask()  # connects, and loads what a first request loads
        print("ready", flush=True)
        probes = [
            asyncio.create_task(probe(name, ask))
            for name, ask in (("healthz", healthz), ("chat", chat), ("control", idle))
        ]
        await asyncio.to_thread(sys.stdin.readline)
        stopped.set()
        healthz_ms, chat_ms, control_ms = await asyncio.gather(*probes)
    return {
        "healthz_p99_ms": healthz_ms,
        "chat_p99_ms": chat_ms,
        "control_p99_ms": control_ms,
        "failures": failures[:5],
    }


async def _ok(_: web.BaseRequest) -> web.Response:
    return web.Response()


if __name__ == "__main__":
    asyncio.run(main())
