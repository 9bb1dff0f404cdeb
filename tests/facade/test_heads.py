"""Heads of requests: encodings, credentials, expectations, upgrades to other protocols."""

import gzip

import pytest
from aiohttp import hdrs

from tests.facade.sockets import exchange, port_of, read_answers
from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"
FILES = "/beta/v1/files"
ARTICLES = "/article/v1/doc/read"
PATHS = [CHAT, MESSAGES, FILES, ARTICLES, "/healthz", "/docs", "/elsewhere"]
BODY = b'{"model":"sandbox/echo","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}'


def head(gateway, path, *fields, method="POST", version="1.1", close=True):
    lines = [
        f"{method} {path} HTTP/{version}",
        "Host: a",
        f"Authorization: Bearer {gateway.key}",
        "Content-Type: application/json",
        *(["compat-version: 2023-06-01"] if path == MESSAGES else []),
        *(["Connection: close"] if close else []),
        *fields,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def ask(gateway, *pieces):
    """Return the answers to pieces that are sent one after another."""
    return read_answers(await exchange(port_of(gateway.url), *pieces))


@each_row("path", PATHS)
@each_row("coding", ["gzip", "br", "deflate", "zstd", "GZip", "identity, gzip", "x"])
async def test_an_encoded_body_is_refused_before_it_comes(gateway, path, coding):
    unread = head(gateway, path, f"Content-Encoding: {coding}", "Content-Length: 1000000")
    (answer,) = await ask(gateway, unread)
    assert (answer.status, answer.headers["connection"]) == (415, "close")
    assert b"Content-Encoding: must be identity" in answer.body


async def test_a_second_coding_is_seen(gateway):
    fields = ("Content-Encoding: identity", "Content-Encoding: gzip", "Content-Length: 9")
    (answer,) = await ask(gateway, head(gateway, CHAT, *fields))
    assert answer.status == 415


@pytest.mark.parametrize("coding", ["identity", "Identity", ""])
async def test_a_body_that_is_not_encoded_may_say_so(gateway, coding):
    fields = (f"Content-Encoding: {coding}", f"Content-Length: {len(BODY)}")
    (answer,) = await ask(gateway, head(gateway, CHAT, *fields) + BODY)
    assert answer.status == 200


async def test_nothing_is_unpacked(gateway):
    body = gzip.compress(bytes(1 << 20))
    fields = ("Content-Encoding: gzip", f"Content-Length: {len(body)}")
    (answer,) = await ask(gateway, head(gateway, "/healthz", *fields) + body)
    assert answer.status == 415


@each_row("path", [CHAT, MESSAGES, FILES, ARTICLES])
@each_row("name", ["Authorization", "x-api-key"])
async def test_a_credential_that_is_there_twice_is_refused(gateway, path, name):
    for second in (gateway.key, f"gw-{'x' * 43}"):
        field = (
            f"Authorization: Bearer {second}" if name == "Authorization" else f"{name}: {second}"
        )
        (answer,) = await ask(
            gateway, head(gateway, path, field, *[field] * (name != "Authorization"))
        )
        assert answer.status == 400
        assert f"{name}: duplicate header".encode() in answer.body
        assert second.encode() not in answer.body


async def test_no_answer_names_the_server(gateway):
    for path in ("/healthz", "/elsewhere", "/docs", FILES, "/beta/v1/models"):
        (answer,) = await ask(gateway, head(gateway, path, method="GET"))
        assert "server" not in answer.headers


async def test_a_body_is_asked_for_once_the_key_is_known(gateway):
    wanting = head(gateway, CHAT, "Expect: 100-continue", f"Content-Length: {len(BODY)}")
    data = await exchange(port_of(gateway.url), wanting, BODY)
    interim, _, remainder = data.partition(b"\r\n\r\n")
    assert interim == b"HTTP/1.1 100 Continue"
    assert [answer.status for answer in read_answers(remainder)] == [200]


async def test_a_body_is_not_asked_for_without_a_key(gateway):
    wanting = head(gateway, CHAT, "Expect: 100-continue", f"Content-Length: {len(BODY)}")
    (answer,) = await ask(gateway, wanting.replace(gateway.key.encode(), b"nothing"))
    assert (answer.status, answer.headers["connection"]) == (401, "close")


@pytest.mark.parametrize("path", [CHAT, ARTICLES, "/elsewhere", "/healthz"])
async def test_another_expectation_is_refused_and_not_quoted(gateway, path):
    (answer,) = await ask(gateway, head(gateway, path, "Expect: CANARY"))
    assert answer.status == 417
    assert b"CANARY" not in answer.body


@pytest.mark.parametrize("protocol", ["websocket", "h2c", "CANARY"])
async def test_an_upgrade_is_not_made_and_its_request_is_served(gateway, protocol):
    upgrade = ("Connection: Upgrade", f"Upgrade: {protocol}", "Sec-WebSocket-Version: 13")
    first = head(gateway, CHAT, *upgrade, f"Content-Length: {len(BODY)}", close=False) + BODY
    second = head(gateway, "/healthz", method="GET")
    (answer,) = await ask(gateway, first + second, second)
    assert (answer.status, answer.headers["connection"]) == (200, "close")


async def test_no_tunnel_is_opened(gateway):
    request = head(gateway, "example.com:443", method="CONNECT", close=False)
    (answer,) = await ask(gateway, request + b"CANARY", b"CANARY")
    assert (answer.status, answer.headers["connection"]) == (404, "close")
    assert b"CANARY" not in answer.body


async def test_what_http_1_0_asks_is_answered(gateway):
    (answer,) = await ask(gateway, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert answer.status == 200


async def test_requests_in_one_packet_are_answered_in_order(gateway):
    asked = [head(gateway, f"/healthz?{n}", method="GET", close=False) for n in range(20)]
    chat = head(gateway, CHAT, f"Content-Length: {len(BODY)}", close=False) + BODY
    last = head(gateway, "/elsewhere", method="GET")
    answers = await ask(gateway, b"".join([*asked, chat, last]))
    assert [answer.status for answer in answers] == [200] * 21 + [404]


async def test_pipelined_requests_wait_for_late_bodies(gateway):
    path = "/beta/v1/messages/count_tokens"
    fields = ("compat-version: 2023-06-01", f"Content-Length: {len(BODY)}")
    late = head(gateway, path, *fields, close=False)
    asked = head(gateway, "/healthz", method="GET", close=False) * 3
    last = head(gateway, "/elsewhere", method="GET")
    answers = await ask(gateway, late, BODY, late, BODY, asked + last)
    assert [answer.status for answer in answers] == [200] * 5 + [404]


async def test_an_early_answer_to_a_long_body_is_read(gateway):
    headers = {**gateway.bearer(), hdrs.CONTENT_TYPE: "text/plain"}

    async def endless():
        for _ in range(400):
            yield bytes(1 << 16)

    async with gateway.http.post(gateway.url + CHAT, data=endless(), headers=headers) as answer:
        assert answer.status == 415
        assert "application/json" in (await answer.json())["error"]["message"]
