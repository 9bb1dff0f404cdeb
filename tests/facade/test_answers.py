"""What goes over the wire of a whole answer."""

import asyncio
from email.utils import parsedate_to_datetime
from typing import Any, Self

import pytest
from aiohttp import web

from facade.answers import Answer
from facade.context import REQUEST_ID
from tests.services.inference.fallback.virtual_time import in_no_time

BODY = b'{"id": "a"}'
NOW = 1_795_000_000.9


class Transport(asyncio.Transport):
    """Keeps each write."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Server:
    """Gives the same answer to every request of one connection."""

    protocol: Any

    def __init__(self) -> None:
        self.transport = Transport()
        self.asked = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        assert self._runner.server is not None
        self.protocol = self._runner.server()
        self.protocol.connection_made(self.transport)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.protocol.connection_lost(None)
        await self._runner.cleanup()

    async def ask(self, version: str = "1.1", *fields: str) -> None:
        lines = [f"GET / HTTP/{version}", "host: a", *fields, "", ""]
        self.protocol.data_received("\r\n".join(lines).encode())
        await asyncio.sleep(1)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        request[REQUEST_ID] = "req_1"
        return Answer(BODY, {"x-gateway-model": "m%20n"}, NOW)


def read(written: bytes) -> tuple[str, dict[str, str], bytes]:
    head, _, body = written.partition(b"\r\n\r\n")
    status, *lines = head.decode("ascii").split("\r\n")
    names = dict(line.split(": ", 1) for line in lines)
    assert len(names) == len(lines)
    return status, names, body


@in_no_time
async def test_head_and_body_are_one_write() -> None:
    async with Server() as server:
        await server.ask()
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
    async with Server() as server:
        for _ in range(3):
            await server.ask()
        assert [read(one)[2] for one in server.transport.written] == [BODY] * 3
        assert not server.transport.closed


@pytest.mark.parametrize(
    ("version", "asked", "told"),
    [
        ("1.1", "keep-alive", None),
        ("1.1", "close", "close"),
        ("1.0", "keep-alive", "keep-alive"),
        ("1.0", "close", "close"),
    ],
)
def test_a_connection_stays_as_its_caller_asks(version: str, asked: str, told: str | None) -> None:
    @in_no_time
    async def check() -> None:
        async with Server() as server:
            await server.ask(version, f"Connection: {asked}")
            assert read(server.transport.written[0])[1].get("Connection") == told
            assert server.transport.closed == (told == "close")

    check()


@in_no_time
async def test_a_connection_of_http_1_0_ends_where_nothing_is_asked() -> None:
    async with Server() as server:
        await server.ask("1.0")
        assert read(server.transport.written[0])[1]["Connection"] == "close"
        assert server.transport.closed


@in_no_time
async def test_who_reads_slowly_is_not_answered_again_meanwhile() -> None:
    async with Server() as server:
        server.protocol.pause_writing()
        await server.ask()
        await server.ask()
        assert (server.asked, len(server.transport.written)) == (1, 1)
        server.protocol.resume_writing()
        await asyncio.sleep(1)
        assert (server.asked, len(server.transport.written)) == (2, 2)


@in_no_time
async def test_who_has_left_is_no_failure() -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: failures.append(told))
    async with Server() as server:
        server.transport.closed = True
        await server.ask()
        assert (server.asked, server.transport.written, failures) == (1, [], [])
