"""Callers who ask for streams and read nothing."""

import asyncio
import json
import socket
from collections.abc import Iterator

import aiohttp
import pytest

from tests.attacks.observer import Observer
from tests.e2e.gateway import Gateway
from tests.e2e.processes import PYTHON, Running
from tests.waiting import until

CLIENTS = 400
MAX_STALLED = 50
LIVE_CALLS = "gateway_upstream_live_calls"
CUT = 'gateway_http_limits_reached_total{limit="limits.max_stalled_readers"}'


@pytest.fixture(scope="module")
def upstream_port() -> Iterator[int]:
    with Running([PYTHON, "-m", "tests.attacks.endless", "0"]) as process:
        yield int(process.wait_for(r"endless on (\d+)")[1])


def unread_stream(target: Gateway, key: str) -> socket.socket:
    """Ask for a stream on a connection that takes as little as it can."""
    message = {"role": "user", "content": "Hello"}
    body = json.dumps({"model": "openai/m", "stream": True, "messages": [message]})
    caller = socket.socket()
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    caller.connect(("127.0.0.1", target.port))
    caller.send(
        (
            "POST /beta/v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
            f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()
    )
    return caller


async def live_and_cut(target: Gateway) -> tuple[float, float]:
    """Return how many calls to providers are under way, and how many readers were cut off."""
    async with aiohttp.ClientSession() as http, http.get(f"{target.metrics_url}/metrics") as answer:
        samples = [line.rpartition(" ") for line in (await answer.text()).splitlines()]
    values = {name: float(value) for name, _, value in samples if name in (LIVE_CALLS, CUT)}
    # A counter with labels is there from the first time on that it counts.
    return values[LIVE_CALLS], values.get(CUT, 0.0)


@pytest.mark.soak
async def test_callers_who_read_nothing_are_harmless(
    target: Gateway, attacker_key: str, observer: Observer
) -> None:
    callers = []

    async def are_cut() -> bool:
        live, cut = await live_and_cut(target)
        return cut > 0 and live <= MAX_STALLED

    async with observer.watch() as measured:
        for _ in range(CLIENTS):
            callers.append(await asyncio.to_thread(unread_stream, target, attacker_key))
        await until(are_cut, every_s=0.2)
    for caller in callers:
        caller.close()
    await until(lambda: _none(target))
    measured.assert_harmless()


async def _none(target: Gateway) -> bool:
    live, _ = await live_and_cut(target)
    return live == 0
