"""Connections with TLS that send a byte at a time: of the handshake, of a head, of a body."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress

import aiohttp
import pytest

from tests.attacks.observer import rss_mb
from tests.certificates import Certificates, issue
from tests.e2e.gateway import Gateway
from tests.waiting import until

CONNECTIONS = 200
MAX_GROWTH_MB = 100
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}
HEAD = b"POST /beta/v1/messages HTTP/1.1\r\nhost: a\r\nx-long: "
BODY_HEAD = (
    "POST /beta/v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n"
    "content-type: application/json\r\ncontent-length: 100000\r\n\r\n"
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def settings(certificates: Certificates) -> str:
    return (
        f'[server]\ntls_certificate = "{certificates.certificate}"\n'
        f'tls_key = "{certificates.key}"\n'
        "[limits]\nhead_timeout_s = 2\nbody_idle_s = 2\nmin_body_bytes_per_s = 1000\n"
    )


@pytest.fixture(scope="module")
def context(certificates: Certificates) -> ssl.SSLContext:
    return certificates.client(shows_certificate=False)


class Trickle:
    """Connections that each send one more byte now and then, until the gateway closes them."""

    def __init__(self, endless: Callable[[int], bytes]) -> None:
        self._endless = endless
        self._writers: list[asyncio.StreamWriter] = []
        self._reading: list[asyncio.Task[bytes]] = []
        self._sent = 0

    async def open(self, port: int, first: bytes, context: ssl.SSLContext | None) -> None:
        """Open one more connection, and send what goes at once."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(first)
        self._writers.append(writer)
        self._reading.append(asyncio.create_task(_read(reader)))

    def are_closed(self) -> bool:
        """Send a byte on each connection; return whether the gateway has closed them all."""
        for writer in self._writers:
            if not writer.is_closing():
                writer.write(self._endless(self._sent))
        self._sent += 1
        return all(task.done() for task in self._reading)

    def answers(self) -> list[bytes]:
        """Return what was read on each connection."""
        return [task.result() for task in self._reading]

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> bytes:
    data = b""
    with suppress(ConnectionError, ssl.SSLError):
        while piece := await reader.read(65536):
            data += piece
    return data


def hello_of(context: ssl.SSLContext) -> bytes:
    """Return the first message of a handshake."""
    sent = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    return sent.read()


@pytest.fixture(params=["handshake", "head", "body"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.thorough(one_in=2)
async def test_trickled_tls_keeps_nobody_out(
    target: Gateway, attacker_key: str, context: ssl.SSLContext, kind: str
) -> None:
    hello = hello_of(context)
    first = {"handshake": hello[:10], "head": HEAD, "body": BODY_HEAD.format(key=attacker_key)}[
        kind
    ]
    first = first if isinstance(first, bytes) else first.encode()
    remainder = hello[10:-1] if kind == "handshake" else b""
    # A handshake stops before its last byte, heads and bodies go on.
    trickle = Trickle(lambda sent: remainder[sent : sent + 1] if kind == "handshake" else b"x")
    url = f"https://127.0.0.1:{target.port}"
    headers = {"Authorization": f"Bearer {target.key}"}
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as other:

        async def serves() -> None:
            async with other.get(f"{url}/healthz") as answer:
                assert answer.status == 200
            async with other.post(f"{url}/beta/v1/chat/completions", json=CHAT) as answer:
                assert answer.status == 200, await answer.text()

        await serves()
        before = rss_mb(target)
        for _ in range(CONNECTIONS):
            await trickle.open(target.port, first, None if kind == "handshake" else context)
        try:
            await serves()
            await until(trickle.are_closed, within_s=120, every_s=0.05)
        finally:
            await trickle.close()
        await serves()
    assert rss_mb(target) - before < MAX_GROWTH_MB
    answers = {answer.split(b"\r\n")[0] for answer in trickle.answers()}
    if kind == "handshake":
        assert answers == {b""}
    else:
        assert answers <= {b"HTTP/1.1 408 Request Timeout", b""}
        assert b"HTTP/1.1 408 Request Timeout" in answers
    assert "Traceback" not in target.process.output
