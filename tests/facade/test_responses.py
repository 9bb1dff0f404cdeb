"""Bytes of a whole response, and when its connection closes."""

import asyncio
from email.utils import parsedate_to_datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from facade.http.exchange import ClientConnection, Exchange
from facade.http.responses import JsonResponse, StreamedResponse
from tests.facade.plain_connection import NOW, PlainServer
from tests.services.inference.fallback.virtual_time import in_no_time

BODY = b'{"id": "a"}'


async def respond(exchange: Exchange) -> JsonResponse:
    exchange.request_id = "req_1"
    return JsonResponse(BODY, {"x-gateway-model": "m%20n"})


def read(written: bytes) -> tuple[str, dict[str, str], bytes]:
    head, _, body = written.partition(b"\r\n\r\n")
    status, *lines = head.decode("ascii").split("\r\n")
    names = dict(line.split(": ", 1) for line in lines)
    assert len(names) == len(lines)
    return status, names, body


@in_no_time
async def test_head_and_body_are_one_write() -> None:
    async with PlainServer(respond) as server:
        server.send()
        await asyncio.sleep(1)
        (written,) = server.transport.written
    status, names, body = read(written)
    assert (status, body) == ("HTTP/1.1 200 OK", BODY)
    assert parsedate_to_datetime(names.pop("Date")).timestamp() == int(NOW)
    assert names == {
        "Content-Type": "application/json",
        "Content-Length": str(len(BODY)),
        "x-gateway-model": "m%20n",
        "x-request-id": "req_1",
        "request-id": "req_1",
    }


@in_no_time
async def test_a_connection_serves_the_next_request() -> None:
    async with PlainServer(respond) as server:
        for _ in range(3):
            server.send()
            await asyncio.sleep(1)
        assert [read(one)[2] for one in server.transport.written] == [BODY] * 3
        assert not server.transport.closed


@in_no_time
async def test_requests_sent_at_once_are_answered_in_order() -> None:
    served: list[int] = []

    async def count(exchange: Exchange) -> JsonResponse:
        served.append(len(served))
        number = len(served)
        await asyncio.sleep(1)
        assert len(served) == number
        return JsonResponse(b"%d" % number, {})

    async with PlainServer(count) as server:
        for _ in range(3):
            server.send()
        await asyncio.sleep(10)
        assert [read(one)[2] for one in server.transport.written] == [b"1", b"2", b"3"]


class Client:
    """The connection of an exchange, which keeps what is written."""

    writing_paused = False

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    async def drain(self) -> None: ...

    def authenticated(self) -> None: ...


def exchange_of(client: ClientConnection, **kwargs: Any) -> Exchange:
    context = cast(Any, SimpleNamespace(clock=SimpleNamespace(now=lambda: NOW)))
    return Exchange(context, client, "POST", "/a", "/a", {}, b"", **kwargs)


@pytest.mark.parametrize(
    ("is_http_1_1", "keep_alive", "told"),
    [
        (True, True, None),
        (True, False, "close"),
        (False, True, "keep-alive"),
        (False, False, "close"),
    ],
)
def test_the_head_says_whether_the_connection_stays(
    is_http_1_1: bool, keep_alive: bool, told: str | None
) -> None:
    exchange = exchange_of(Client(), is_http_1_1=is_http_1_1, keep_alive=keep_alive)
    assert read(JsonResponse(BODY, {}).encode(exchange))[1].get("Connection") == told


def test_a_stream_comes_in_chunks_behind_one_head() -> None:
    client = Client()
    response = StreamedResponse(exchange_of(client), {"x-gateway-model": "m"})
    response.write(b"")
    response.write(b"0123456789abcdef")
    response.write(b"end", is_last=True)
    head, *chunks = client.written
    assert read(head)[1]["Transfer-Encoding"] == "chunked"
    assert chunks == [b"10\r\n0123456789abcdef\r\n", b"3\r\nend\r\n0\r\n\r\n"]


def test_a_stream_over_http_1_0_ends_with_the_connection() -> None:
    client = Client()
    exchange = exchange_of(client, is_http_1_1=False)
    response = StreamedResponse(exchange, {})
    response.write(b"a")
    response.write(b"b", is_last=True)
    _, names, body = read(b"".join(client.written))
    assert (names["Connection"], body, exchange.keep_alive) == ("close", b"ab", False)
    assert "Transfer-Encoding" not in names


@in_no_time
async def test_who_reads_slowly_is_not_answered_again_meanwhile() -> None:
    async with PlainServer(respond) as server:
        server.protocol.pause_writing()
        server.send()
        server.send()
        await asyncio.sleep(1)
        assert len(server.transport.written) == 1
        server.protocol.resume_writing()
        await asyncio.sleep(1)
        assert len(server.transport.written) == 2


@in_no_time
async def test_who_has_left_is_no_failure() -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: failures.append(told))
    async with PlainServer(respond) as server:
        server.transport.closed = True
        server.send()
        await asyncio.sleep(1)
        assert (server.transport.written, failures) == ([], [])


@in_no_time
async def test_an_endpoint_that_fails_unforeseen_is_answered_500() -> None:
    async def fail(exchange: Exchange) -> JsonResponse:
        raise KeyError("secret")

    async with PlainServer(fail) as server:
        server.send()
        await asyncio.sleep(1)
        (written,) = server.transport.written
        assert written.startswith(b"HTTP/1.1 500 ")
        assert b"secret" not in written
        assert server.transport.closed
