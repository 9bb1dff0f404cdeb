"""How bodies are read: in time, within the budget, and asked for only when they are wanted."""

import asyncio
import json
from contextlib import suppress

import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"
SEARCH = "/beta/v1/memories/m/search"
ARTICLES = "/article/v1/doc/list"
IDLE_S = 0.3
PER_USER = 4096
LIMITS = {
    "body_idle_s": IDLE_S,
    "min_body_bytes_per_s": 1024,
    "max_body_bytes": 1 << 20,
    "max_body_values": 1000,
    "max_buffered_bytes_per_user": PER_USER,
}
BODY = json.dumps(
    {"model": "sandbox/echo", "max_tokens": 10, "messages": [{"role": "user", "content": "Hello"}]}
).encode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory):
    async with running_gateway(tmp_path_factory.mktemp("gateway"), limits=LIMITS) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def patient(tmp_path_factory):
    """Run a gateway that waits for bodies as long as it takes."""
    limits = {**LIMITS, "body_idle_s": 60}
    async with running_gateway(tmp_path_factory.mktemp("patient"), limits=limits) as one:
        yield one


class Client:
    """A connection on which a request is written by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> bytes:
        return await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 10)

    async def answer(self) -> tuple[int, bytes]:
        """Return the status and all that comes until the connection closes."""
        whole = await asyncio.wait_for(self.reader.read(), 10)
        head, _, body = whole.partition(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), body

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


@pytest_asyncio.fixture(loop_scope="module")
async def connect():
    """Return what begins a request by hand."""
    clients: list[Client] = []

    async def begin(
        gateway: Gateway, path: str, length: int | None, *fields: str, key: str = ""
    ) -> Client:
        port = int(gateway.url.rpartition(":")[2])
        client = Client(*await asyncio.open_connection("127.0.0.1", port))
        clients.append(client)
        framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
        lines = [
            f"POST {path} HTTP/1.1",
            "Host: gateway",
            f"x-api-key: {key or gateway.key}",
            "compat-version: 2023-06-01",
            "Content-Type: application/json",
            framing,
            *fields,
        ]
        client.send("\r\n".join([*lines, "", ""]).encode())
        return client

    yield begin
    for client in clients:
        await client.close()


def reached(gateway: Gateway, limit: str) -> float:
    value = gateway.counters.get_sample_value(
        "gateway_http_limits_reached_total", {"limit": f"limits.{limit}"}
    )
    return value or 0.0


def live(gateway: Gateway) -> float | None:
    return gateway.counters.get_sample_value("gateway_http_live_requests")


@pytest.mark.parametrize(
    ("path", "beginning"),
    [
        (CHAT, b'{"error":{"message":"body: no data received for 0.3 seconds"'),
        (MESSAGES, b'{"type":"error"'),
        (SEARCH, b'{"type":"error"'),
        (ARTICLES, b'{"code":40801'),
    ],
)
async def test_a_stalling_client_gets_an_error_and_is_cut(gateway, connect, path, beginning):
    before = reached(gateway, "body_idle_s")
    client = await connect(gateway, path, len(BODY))
    client.send(BODY[:20])
    status, body = await client.answer()
    assert status == 408
    assert body.startswith(beginning)
    assert reached(gateway, "body_idle_s") == before + 1


async def test_a_client_that_trickles_is_cut_too(gateway, connect):
    before = reached(gateway, "min_body_bytes_per_s")
    client = await connect(gateway, CHAT, len(BODY))

    async def trickle() -> None:
        for byte in BODY:
            client.send(bytes([byte]))
            await asyncio.sleep(IDLE_S / 10)

    trickling = asyncio.create_task(trickle())
    status, body = await client.answer()
    trickling.cancel()
    assert (status, b"at less than 1,024 bytes per second" in body) == (408, True)
    assert reached(gateway, "min_body_bytes_per_s") == before + 1


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_user_has_so_many_bytes_of_bodies(patient, connect, chunked):
    before = reached(patient, "max_buffered_bytes_per_user")
    waiting = await connect(patient, CHAT, PER_USER)
    waiting.send(BODY[:20])
    await until(lambda: live(patient) == 1)
    client = await connect(patient, CHAT, None if chunked else len(BODY))
    client.send(b"1000\r\n" + b" " * 4096 + b"\r\n" if chunked else BODY[:20])
    head = await client.head()
    assert head.startswith(b"HTTP/1.1 429 ")
    assert b"Retry-After: 1" in head
    assert reached(patient, "max_buffered_bytes_per_user") == before + 1
    await client.close()
    # What is held is given back when the client leaves.
    await waiting.close()
    await until(lambda: live(patient) == 0)
    again = await connect(patient, CHAT, PER_USER, "Connection: close")
    again.send(BODY[:20])
    await until(lambda: live(patient) == 1)
    again.send(BODY[20:] + b" " * (PER_USER - len(BODY)))
    assert (await again.answer())[0] == 200


@pytest.mark.parametrize(
    ("path", "length", "key", "status"),
    [
        (CHAT, len(BODY), "gw-" + "x" * 43, 401),
        (CHAT, 2 << 20, "", 413),
        (ARTICLES, 3 << 20, "", 413),
        (SEARCH, 3 << 20, "", 413),
    ],
)
async def test_a_refusal_comes_without_the_body(gateway, connect, path, length, key, status):
    client = await connect(gateway, path, length, "Expect: 100-continue", key=key)
    head = await client.head()
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"connection: close" in head.lower()


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_a_body_is_asked_for_once_it_is_wanted(gateway, connect, path):
    fields = ("Expect: 100-continue", "Connection: close")
    client = await connect(gateway, path, len(BODY), *fields)
    assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(BODY)
    assert (await client.answer())[0] == 200


@pytest.mark.parametrize("path", [CHAT, MESSAGES, ARTICLES])
async def test_too_many_values_are_refused_unread(gateway, path):
    before = reached(gateway, "max_body_values")
    many = b'{"x":[' + b"1," * 1000 + b"1]}"
    async with gateway.http.post(
        gateway.url + path,
        data=many,
        headers={**gateway.api_key(), "Content-Type": "application/json"},
    ) as answer:
        assert answer.status == 413
        assert "more than 1,000 JSON values" in await answer.text()
    assert reached(gateway, "max_body_values") == before + 1


async def test_commas_in_a_text_are_no_values(gateway):
    text = ",[{" * 2000
    async with gateway.http.post(
        gateway.url + CHAT,
        json={"model": "sandbox/echo", "messages": [{"role": "user", "content": text}]},
        headers=gateway.bearer(),
    ) as answer:
        assert answer.status == 200


async def test_broken_framing_is_reported(gateway, connect):
    client = await connect(gateway, CHAT, None)
    client.send(b"5\r\n{    \r\nnot a length\r\n")
    status, _ = await client.answer()
    assert status == 400
