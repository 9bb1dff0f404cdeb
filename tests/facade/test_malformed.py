"""Malformed HTTP is refused in the endpoint's format, and nothing of it is quoted or logged."""

import asyncio
import logging

import pytest
import pytest_asyncio

from tests.facade.malformed import CANARY, in_fields, in_framing, in_line, request
from tests.facade.sockets import Answer, exchange, port_of, read_answers
from tests.grid import each_row
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"
CODING = "/coding/v1/messages"
ARTICLES = "/article/v1/doc/read"
UNKNOWN = "/elsewhere"
PATHS = (CHAT, MESSAGES, CODING, ARTICLES, UNKNOWN)


def error_format(answer: Answer) -> str:
    """Return which of the formats an error has."""
    told = answer.json
    if set(told) == {"code", "message", "data"}:
        return "envelope"
    if told.get("type") == "error":
        assert told["request_id"] == answer.headers["request-id"]
        return "B"
    assert {"message", "type", "param", "code"} <= set(told["error"])
    return "A"


FORMATS = {CHAT: "A", MESSAGES: "B", CODING: "B", ARTICLES: "envelope", UNKNOWN: "A"}


def assert_refused(data: bytes) -> Answer:
    """Assert that there is one answer, a refusal that ends the connection; return it."""
    assert CANARY.encode() not in data
    (answer,) = read_answers(data)
    assert 400 <= answer.status < 500, data
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["connection"] == "close"
    assert answer.headers["x-request-id"] == answer.headers["request-id"]
    assert "server" not in answer.headers
    return answer


async def refuse(port: int, data: bytes) -> list[Answer]:
    """Send a request whole and in halves; return the answers."""
    middle = len(data) // 2
    told = await asyncio.gather(exchange(port, data), exchange(port, data[:middle], data[middle:]))
    return [assert_refused(one) for one in told]


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def logged(gateway):
    """Assert that the requests of this module are logged, and nothing of what they say."""
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield
    await until(lambda: any(record.name == "facade.access" for record in records))
    root.setLevel(level)
    root.removeHandler(handler)
    for record in records:
        assert CANARY not in f"{record.getMessage()} {record.__dict__} {record.exc_text}"


def names(of):
    return [name for name, _ in of(CHAT)]


@each_row("name", names(in_fields))
async def test_broken_fields_are_refused_in_the_format_of_the_path(gateway, name):
    for path in PATHS:
        data = dict(in_fields(path))[name]
        for answer in await refuse(port_of(gateway.url), data):
            assert error_format(answer) == FORMATS[path], path


@each_row("name", names(in_framing))
async def test_doubtful_bodies_are_refused_in_the_format_of_the_path(gateway, name):
    for path in PATHS:
        data = dict(in_framing(path))[name]
        for answer in await refuse(port_of(gateway.url), data):
            assert error_format(answer) == FORMATS[path], path


@each_row("name", names(in_line))
async def test_broken_request_lines_are_refused(gateway, name):
    for path in PATHS:
        for answer in await refuse(port_of(gateway.url), dict(in_line(path))[name]):
            assert error_format(answer) in ("A", FORMATS[path])


async def test_what_follows_a_refused_request_is_not_served(gateway):
    good = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    bad = request(CHAT, f"X : {CANARY}")
    port = port_of(gateway.url)
    assert_refused(await exchange(port, bad + good))
    assert_refused(await exchange(port, bad, good))


async def test_what_came_before_is_answered_first(gateway):
    good = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    data = await exchange(port_of(gateway.url), good * 2, request(CHAT, f"X : {CANARY}"))
    assert [answer.status for answer in read_answers(data)] == [200, 200, 400]


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_what_came_before_in_the_same_packet_is_answered_first(gateway, count):
    good = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    data = await exchange(port_of(gateway.url), good * count + request(CHAT, f"X : {CANARY}"))
    assert [answer.status for answer in read_answers(data)] == [*[200] * count, 400]


async def test_a_chunk_that_breaks_while_its_request_is_served(gateway):
    head = (
        f"POST {MESSAGES} HTTP/1.1\r\nHost: a\r\nx-api-key: {gateway.key}\r\n"
        "compat-version: 2023-06-01\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
    )
    data = await exchange(port_of(gateway.url), head.encode(), f"zz{CANARY}\r\n".encode())
    answer = assert_refused(data)
    assert (answer.status, error_format(answer)) == (400, "B")
    assert "body" in answer.json["error"]["message"]
