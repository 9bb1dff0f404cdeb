"""How many connections there may be, and how long each may take for what."""

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from facade.http.connections import Connections
from facade.http.refused import RefusedConnection
from facade.reports import FacadeMetrics
from services.common.settings import Limits
from tests.facade.plain_connection import Transport
from tests.facade.sockets import exchange, port_of, read_answers
from tests.gateway_in_process import running_gateway
from tests.waiting import until

SHORT_S = 0.3
HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
MESSAGES = b"POST /beta/v1/messages HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture
async def gateway(tmp_path):
    limits = {
        "head_timeout_s": SHORT_S,
        "idle_connection_s": 4 * SHORT_S,
        "max_head_bytes": 8192,
        "max_header_fields": 20,
        "max_connections": 10,
        "reserved_connections": 0.5,
    }
    async with running_gateway(tmp_path, limits=limits) as one:
        yield one


def reached(gateway, limit):
    labels = {"limit": f"limits.{limit}"}
    return gateway.counters.get_sample_value("gateway_http_limits_reached_total", labels) or 0


def connections(gateway):
    return gateway.counters.get_sample_value("gateway_http_connections")


@asynccontextmanager
async def connected(gateway, sends=b""):
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(gateway.url))
    writer.write(sends)
    try:
        yield reader
    finally:
        writer.close()


async def test_an_unfinished_head_is_an_error_of_its_path_s_dialect(gateway):
    (answer,) = read_answers(await exchange(port_of(gateway.url), MESSAGES, b"X-Secret: CAN"))
    assert (answer.status, answer.json["error"]["code"]) == (408, "head_timeout")
    assert answer.json["type"] == "error"
    assert reached(gateway, "head_timeout_s") == 1


async def test_a_head_that_takes_too_long_ends_without_a_reset(gateway):
    async with connected(gateway, MESSAGES) as reader:
        (answer,) = read_answers(await reader.read())
        assert answer.status == 408
        assert connections(gateway) == 1  # it reads what is still under way
        await until(lambda: connections(gateway) == 0, every_s=0.1)  # not for long


async def test_bytes_that_come_one_by_one_do_not_buy_time(gateway):
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(gateway.url))
    reading = asyncio.create_task(reader.read(-1))
    writer.write(MESSAGES)
    while not reading.done():
        writer.write(b"a")
        await asyncio.wait([reading], timeout=SHORT_S / 10)
    (answer,) = read_answers(await reading)
    writer.close()
    assert answer.status == 408


async def test_who_connects_and_says_nothing_is_sent_away(gateway):
    assert await exchange(port_of(gateway.url)) == b""
    assert reached(gateway, "head_timeout_s") == 1


async def test_an_idle_connection_outlives_the_time_for_a_head(gateway):
    loop = asyncio.get_running_loop()
    async with connected(gateway, HEALTHZ) as reader:
        await reader.readuntil(b"}")
        began = loop.time()
        assert await reader.read() == b""
        assert loop.time() - began > 3 * SHORT_S
    assert reached(gateway, "head_timeout_s") == 0


async def test_an_empty_line_after_a_request_begins_nothing(gateway):
    async with connected(gateway, HEALTHZ + b"\r\n") as reader:
        await reader.readuntil(b"}")
        assert await reader.read() == b""
    assert reached(gateway, "head_timeout_s") == 0


async def test_a_head_in_many_packets_is_bounded_as_a_whole(gateway):
    fields = [b"X-%d: %b\r\n" % (number, b"CANARY" * 100) for number in range(19)]
    (answer,) = read_answers(await exchange(port_of(gateway.url), MESSAGES, *fields))
    assert (answer.status, answer.json["error"]["code"]) == (431, "head_too_large")
    assert "8,192 bytes" in answer.json["error"]["message"]
    assert reached(gateway, "max_head_bytes") == 1


async def test_a_head_in_one_packet_is_bounded_as_a_whole(gateway):
    fields = b"".join(b"X-%d: %b\r\n" % (number, b"CANARY" * 100) for number in range(15))
    (answer,) = read_answers(await exchange(port_of(gateway.url), MESSAGES + fields + b"\r\n"))
    assert (answer.status, answer.json["type"]) == (431, "error")
    assert reached(gateway, "max_head_bytes") == 1


async def test_a_head_behind_another_request_is_bounded_as_a_whole(gateway):
    fields = b"".join(b"X-%d: %b\r\n" % (number, b"CANARY" * 100) for number in range(15))
    sent = HEALTHZ + HEALTHZ + MESSAGES + fields + b"\r\n"
    answers = read_answers(await exchange(port_of(gateway.url), sent))
    assert [answer.status for answer in answers] == [200, 200, 431]
    assert answers[2].json["type"] == "error"
    assert reached(gateway, "max_head_bytes") == 1


async def test_a_body_in_the_same_packet_does_not_count_as_head(gateway):
    body = b" " * 20_000
    length = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    (answer,) = read_answers(await exchange(port_of(gateway.url), MESSAGES + length + body))
    assert answer.status == 401


async def test_fields_are_counted(gateway):
    fields = b"".join(b"X-%d: a\r\n" % number for number in range(20))
    (answer,) = read_answers(await exchange(port_of(gateway.url), MESSAGES + fields + b"\r\n"))
    assert (answer.status, answer.json["error"]["code"]) == (431, "too_many_header_fields")
    assert reached(gateway, "max_header_fields") == 1


async def test_the_stranger_who_waits_longest_makes_room(gateway, caplog):
    begun = [connected(gateway, HEALTHZ) for _ in range(5)]
    readers = [await one.__aenter__() for one in begun]
    for reader in readers:
        await reader.readuntil(b"}")
    async with connected(gateway, HEALTHZ) as newest:
        await newest.readuntil(b"}")
        assert connections(gateway) == 5
        assert await readers[0].read() == b""
    assert reached(gateway, "max_connections") == 1
    (line,) = [one for one in caplog.records if "limits.max_connections" in one.getMessage()]
    assert (line.without_key, line.max_connections) == (5, 10)
    for one in begun:
        await one.__aexit__(None, None, None)


async def test_an_unfinished_head_that_makes_room_is_reported(gateway):
    begun = [connected(gateway, MESSAGES) for _ in range(5)]
    readers = [await one.__aenter__() for one in begun]
    await until(lambda: connections(gateway) == 5)
    async with connected(gateway, HEALTHZ) as newest:
        await newest.readuntil(b"}")
    (answer,) = read_answers(await readers[0].read())
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    for one in begun:
        await one.__aexit__(None, None, None)


async def test_callers_with_a_key_have_connections_of_their_own(gateway):
    models = f"GET /beta/v1/models HTTP/1.1\r\nHost: a\r\nx-api-key: {gateway.key}\r\n"
    models += "compat-version: 2023-06-01\r\n\r\n"
    known = [connected(gateway, models.encode()) for _ in range(10)]
    for one in known:
        reader = await one.__aenter__()
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    assert connections(gateway) == 10
    (answer,) = read_answers(await exchange(port_of(gateway.url), HEALTHZ))
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert (answer.json["error"]["code"], connections(gateway)) == ("unavailable", 10)
    for one in known:
        await one.__aexit__(None, None, None)
    await until(lambda: connections(gateway) == 0)


async def test_connections_are_counted_until_they_end(gateway):
    for _ in range(3):
        async with connected(gateway, HEALTHZ) as reader:
            await reader.readuntil(b"}")
    await until(lambda: connections(gateway) == 0)


async def test_a_descriptor_that_is_reset_is_given_back(gateway):
    caller = socket.create_connection(("127.0.0.1", port_of(gateway.url)))
    await until(lambda: connections(gateway) == 1)
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    caller.close()
    await until(lambda: connections(gateway) == 0)


async def test_a_refused_caller_is_answered_when_it_asks(gateway):
    models = (
        f"GET /beta/v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {gateway.key}\r\n\r\n"
    )
    known = [connected(gateway, models.encode()) for _ in range(10)]
    for one in known:
        reader = await one.__aenter__()
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    for sent, error_type in ((MESSAGES, "error"), (HEALTHZ, None), (b"", None)):
        (answer,) = read_answers(await exchange(port_of(gateway.url), sent))
        assert (answer.status, answer.json.get("type")) == (503, error_type)
    for one in known:
        await one.__aexit__(None, None, None)


class RefusedTransport(Transport):
    """A transport of a refused connection, which can be half closed."""

    def can_write_eof(self):
        return True

    def write_eof(self):
        pass


async def test_few_refused_connections_stay_open():
    connections = Connections(Limits(), FacadeMetrics(CollectorRegistry()))
    transports = [RefusedTransport() for _ in range(100)]
    for transport in transports:
        connections.keep_refused(RefusedConnection(transport, str.encode, is_new=True))
    closed = [transport.closed for transport in transports]
    assert closed == [True] * 36 + [False] * 64
    assert [len(transport.written) for transport in transports] == closed
    assert len(connections) == 0


async def test_a_refused_connection_drops_a_bounded_request():
    paused = []
    transport = RefusedTransport()
    transport.pause_reading = lambda: paused.append(True)
    refused = RefusedConnection(transport, str.encode, is_new=True)
    refused.receive(b"POST /v1/chat/completions HTTP/1.1\r\n")
    for _ in range(16):
        assert not paused
        refused.receive(b"x" * (1 << 20))
    assert paused
    assert transport.written == [b"/v1/chat/completions"]
