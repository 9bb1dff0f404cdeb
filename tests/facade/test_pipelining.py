"""Requests sent before the response to the one before them, on a clock that takes no time."""

import asyncio
from contextvars import ContextVar

import pytest

from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from tests.facade.plain_connection import PATH, PlainServer
from tests.services.inference.fallback.virtual_time import in_no_time

GET = b"GET /other HTTP/1.1\r\nhost: a\r\n\r\n"
VARIABLE = ContextVar("VARIABLE", default="unset")
# What may be read of the requests behind one that waits, and one more read.
MOST_BYTES = (256 + 64) << 10


class Respond:
    """Responds a second after a request; keeps what requests see of one another.

    Attributes:
        paths: the paths of the requests.
        values: the value of a context variable, which each request sets, as the request began.
        most_at_once: the most requests that were served at the same time.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.values: list[str] = []
        self.most_at_once = self._at_once = 0

    async def __call__(self, exchange: Exchange) -> Response:
        self.paths.append(exchange.path)
        self.values.append(VARIABLE.get())
        VARIABLE.set(exchange.path)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(1)
        self._at_once -= 1
        return JsonResponse(b"{}")


@in_no_time
async def test_pipelined_requests_are_served_one_by_one() -> None:
    respond = Respond()
    async with PlainServer(respond, other=respond) as server:
        server.send()
        server.receive(GET)
        server.send()
        server.receive(GET * 3)
        server.send()
        await asyncio.sleep(30)
        assert b"".join(server.transport.written).count(b"HTTP/1.1 200 OK") == 7
    assert respond.most_at_once == 1
    # None has the context variables of the one before it.
    assert respond.values == ["unset"] * 7


@pytest.mark.parametrize("size", [1, 1000, 64 << 10])
@in_no_time
async def test_what_follows_is_read_up_to_a_limit(size: int) -> None:
    respond = Respond()
    async with PlainServer(respond, other=respond) as server:
        server.receive(GET * 2)
        received = 0
        while not server.transport.reading_paused and received < 2 * MOST_BYTES:
            server.receive((GET * (size // len(GET) + 1))[:size])
            received += size
        assert received <= MOST_BYTES
        await asyncio.sleep(2 * received / len(GET))
        assert not server.transport.reading_paused


@in_no_time
async def test_all_that_was_held_is_served() -> None:
    respond = Respond()
    async with PlainServer(respond, other=respond) as server:
        count = 1000
        requests = GET * count
        for start in range(0, len(requests), 7):
            server.receive(requests[start : start + 7])
        await asyncio.sleep(2 * count)
        assert b"".join(server.transport.written).count(b"HTTP/1.1 200 OK") == count


@in_no_time
async def test_held_data_keeps_its_order() -> None:
    respond = Respond()
    async with PlainServer(respond, other=respond) as server:
        server.send()
        server.receive(f"POST {PATH} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nx".encode())
        server.receive(b"y" + GET.replace(b"other", b"first"))
        server.receive(GET.replace(b"other", b"second"))
        await asyncio.sleep(10)
    assert respond.paths == [PATH, PATH, "/first", "/second"]
