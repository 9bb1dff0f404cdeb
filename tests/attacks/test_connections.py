"""Connections without a key that are held open and finish nothing."""

import asyncio
import re
import socket

import pytest

from tests.attacks.observer import Observer
from tests.attacks.raw_sockets import all_ended, collected_sockets, connect
from tests.e2e.gateway import Gateway
from tests.facade.sockets import exchange

MAX_CONNECTIONS = 400
AT_ONCE = 100
HEAD_S = 2
HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
BEGUN = b"POST /beta/v1/messages HTTP/1.1\r\nHost: a\r\nX-Secret: CANARY"


@pytest.fixture(scope="module")
def settings() -> str:
    return f"[limits]\nmax_connections = {MAX_CONNECTIONS}\nhead_timeout_s = {HEAD_S}\n"


async def hold(target: Gateway, held: list[socket.socket], count: int, *sends: bytes) -> None:
    """Open connections that send one thing in turn.

    The gateway reads them before there are many more: of those that it accepts at once it closes
    some unread, maybe that of the observer.
    """
    for number in range(count):
        held.append(await connect(target, sends[number % len(sends)]))
        if number % AT_ONCE == AT_ONCE - 1:
            await exchange(target.port, b"GET /healthz HTTP/1.0\r\n\r\n")


async def test_more_connections_than_there_are_keep_nobody_out(
    target: Gateway, observer: Observer
) -> None:
    with collected_sockets() as held:
        async with observer.watch() as measured:
            await hold(target, held, 3 * MAX_CONNECTIONS, b"", BEGUN)
            answers = await asyncio.wait_for(all_ended(held), 30)
    measured.assert_harmless()
    status_lines = {answer.split(b"\r\n")[0] for answer in answers if answer}
    assert status_lines == {b"HTTP/1.1 503 Service Unavailable", b"HTTP/1.1 408 Request Timeout"}
    assert not any(b"CANARY" in answer for answer in answers)
    lines = [line for line in target.process.output.splitlines() if "max_connections" in line]
    assert 1 <= len(lines) < 5
    page = await exchange(target.metrics_port, b"GET /metrics HTTP/1.0\r\n\r\n")
    for limit in ("max_connections", "head_timeout_s"):
        assert re.search(rb'limits_reached_total{limit="limits.%b"} \d\d' % limit.encode(), page)


async def test_answered_connections_that_stay_keep_nobody_out(
    target: Gateway, observer: Observer
) -> None:
    with collected_sockets() as held:
        async with observer.watch() as measured:
            await hold(target, held, 2 * MAX_CONNECTIONS, HEALTHZ)
        measured.assert_harmless()
