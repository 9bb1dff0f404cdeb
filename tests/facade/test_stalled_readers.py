"""Callers who stop reading, and callers who leave in the middle of an answer."""

import asyncio
import logging
import socket
from types import SimpleNamespace

import orjson
import pytest
from aiohttp import web
from aiohttp.client_exceptions import ClientConnectionResetError
from prometheus_client import CollectorRegistry

from facade.http.exchange import Exchange
from facade.reports import FacadeMetrics
from facade.request_context import RequestsInProgress, request_context
from services.common.clock import Clock
from services.common.process.timer_wheel import TimerWheel
from tests.facade.sockets import port_of
from tests.gateway_in_process import running_gateway
from tests.waiting import until

SHORT_S = 0.4
CHAT = "/beta/v1/chat/completions"
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
DELTA = {"index": 0, "delta": {"role": "assistant", "content": "word " * 200}}
EVENT = b"data: %b\n\n" % orjson.dumps({**CHUNK, "choices": [DELTA]})


class Endless:
    """A provider that never stops; `running` are the streams under way."""

    def __init__(self):
        self.running = 0
        self.app = web.Application()
        self.app.router.add_post("/v1/chat/completions", self._stream)

    async def _stream(self, request):
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        self.running += 1
        try:
            while True:
                await answer.write(EVENT * 8)
                await asyncio.sleep(0.001)
        finally:
            self.running -= 1


@pytest.fixture
def endless():
    return Endless()


@pytest.fixture
def limits():
    return {"stalled_reader_s": SHORT_S}


@pytest.fixture
async def gateway(tmp_path, endless, limits):
    async with running_gateway(tmp_path, endless.app, limits=limits) as one:
        yield one


def reached(gateway, limit):
    labels = {"limit": f"limits.{limit}"}
    return gateway.counters.get_sample_value("gateway_http_limits_reached_total", labels) or 0


def answered(gateway, status):
    labels = {"route": CHAT, "status": str(status)}
    return gateway.counters.get_sample_value("gateway_http_requests_total", labels) or 0


async def stream(gateway):
    """Ask for a stream, on a socket that takes little; return the socket."""
    caller = socket.socket()
    caller.setblocking(False)
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(caller, ("127.0.0.1", port_of(gateway.url)))
    message = {"role": "user", "content": "Hello"}
    body = orjson.dumps({"model": "openai/m", "stream": True, "messages": [message]})
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {gateway.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    await loop.sock_sendall(caller, head.encode() + body)
    return caller


async def test_a_caller_that_reads_nothing_is_disconnected(gateway, endless):
    caller = await stream(gateway)
    await until(lambda: endless.running == 1)
    await until(lambda: reached(gateway, "stalled_reader_s") == 1)
    await until(lambda: endless.running == 0)
    await until(lambda: answered(gateway, 499) == 1)
    caller.close()


# As long as a busy machine may let nobody run; it is real time, by which the kernel sends too.
LONG_S = 5.0


@pytest.mark.parametrize("limits", [{"stalled_reader_s": LONG_S}])
async def test_a_caller_who_reads_slowly_is_not(gateway, endless):
    loop = asyncio.get_running_loop()
    caller = await stream(gateway)
    end = loop.time() + 1.2 * LONG_S
    while loop.time() < end:
        assert await loop.sock_recv(caller, 65536)
        await asyncio.sleep(0.1)
    assert (endless.running, reached(gateway, "stalled_reader_s")) == (1, 0)
    caller.close()
    await until(lambda: endless.running == 0)


async def test_an_unread_answer_does_not_hold_its_connection(gateway):
    caller = socket.socket()
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    caller.connect(("127.0.0.1", port_of(gateway.url)))
    caller.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    await until(lambda: reached(gateway, "stalled_reader_s") == 1)
    gauge = "gateway_http_connections"
    await until(lambda: gateway.counters.get_sample_value(gauge) == 0)
    caller.close()


@pytest.mark.parametrize("limits", [{"max_stalled_readers": 2}])
async def test_of_many_who_read_nothing_the_longest_are_cut(gateway, endless):
    callers = [await stream(gateway) for _ in range(5)]
    await until(lambda: reached(gateway, "max_stalled_readers") == 3)
    await until(lambda: endless.running == 2)
    for caller in callers:
        caller.close()
    await until(lambda: endless.running == 0)


async def test_callers_who_leave_in_the_middle_are_no_failures(gateway, endless, caplog):
    callers = [await stream(gateway) for _ in range(10)]
    loop = asyncio.get_running_loop()
    for caller in callers:
        await loop.sock_recv(caller, 4096)
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
        caller.close()
    await until(lambda: answered(gateway, 499) == 10)
    await until(lambda: endless.running == 0)
    assert answered(gateway, 500) == 0
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


async def test_a_write_to_a_caller_who_left_is_no_failure(caplog):
    """The write fails before the request's task is cancelled."""
    lines = []
    context = SimpleNamespace(
        clock=Clock(),
        metrics=FacadeMetrics(CollectorRegistry()),
        access_log=SimpleNamespace(answered=lambda *line: lines.append(line)),
        timers=TimerWheel(),
        requests=RequestsInProgress(1),
        cors=None,
        telemetry=None,
    )
    exchange = Exchange(context, None, "GET", "/", "/", {})

    async def leaves(_):
        raise ClientConnectionResetError("Cannot write to closing transport")

    with pytest.raises(ConnectionError):
        await request_context(exchange, leaves)
    assert [line[2] for line in lines] == [499]
    assert caplog.records == []
