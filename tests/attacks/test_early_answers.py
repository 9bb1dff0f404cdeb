"""Answers before the end of a request: they are read, although the caller sends on meanwhile."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from tests.certificates import Certificates, issue_by
from tests.e2e.gateway import Gateway, gateway
from tests.facade.sockets import read_answers

NOBODY = 9  # a port on which no provider listens
MIB = 1 << 20
MAX_CONNECTIONS = 40
PIECE = b"x" * (64 << 10)
_MULTIPART = b"Content-Type: multipart/form-data; boundary=b\r\n"
_PURPOSE = b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n'
_JSON = b"Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def settings() -> str:
    return f"[limits]\nmax_connections = {MAX_CONNECTIONS}\nmax_body_bytes = {MIB}\n"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue_by(trustme.CA(), tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def encrypted(
    tmp_path_factory: pytest.TempPathFactory, settings: str, certificates: Certificates
) -> Iterator[Gateway]:
    """Run the same gateway with TLS."""
    folder: Path = tmp_path_factory.mktemp("encrypted")
    files = (
        f'[server]\ntls_certificate = "{certificates.certificate}"\n'
        f'tls_key = "{certificates.key}"\n'
    )
    with gateway(folder, NOBODY, settings=files + settings) as started:
        yield started


@dataclass(frozen=True)
class Early:
    """A request that is answered before its body has been received.

    Attributes:
        path: of the request.
        fields: header fields beside the key.
        begins: the beginning of the body, which the rest repeats `PIECE` after.
        expected: status and code of the answer.
        size: bytes of the body.
        has_key: whether the key is valid.
    """

    path: bytes
    fields: bytes
    begins: bytes
    expected: tuple[int, str]
    size: int = 8 * MIB
    has_key: bool = True

    def head(self, key: str) -> bytes:
        sent_key = key if self.has_key else "gw-" + "x" * 43
        line = b"POST %b HTTP/1.1\r\nHost: a\r\n" % self.path
        fields = b"Authorization: Bearer %b\r\n%b" % (sent_key.encode(), self.fields)
        return line + fields + b"Content-Length: %d\r\n\r\n" % self.size


EARLY = {
    "a long field of an upload": Early(
        b"/v1/files", _MULTIPART, _PURPOSE, (400, "invalid_request")
    ),
    "an upload without a key": Early(
        b"/v1/files", _MULTIPART, _PURPOSE, (401, "invalid_api_key"), has_key=False
    ),
    "a chat without a key": Early(
        b"/v1/chat/completions", _JSON, b"", (401, "invalid_api_key"), has_key=False
    ),
    "a chat that is too large": Early(b"/v1/chat/completions", _JSON, b"", (413, "too_large")),
    "an unknown path": Early(b"/v1/nothing", _JSON, b"", (404, "unknown_path")),
    "a wrong content type": Early(
        b"/v1/chat/completions", b"Content-Type: text/csv\r\n", b"", (415, "unsupported_media_type")
    ),
}


def sent_whole(port: int, head: bytes, early: Early, client: ssl.SSLContext | None = None) -> bytes:
    """Send a whole request before reading, as simple clients do; return what is answered."""
    opened = socket.create_connection(("127.0.0.1", port), timeout=30)
    if client is not None:
        opened = client.wrap_socket(opened, server_hostname="127.0.0.1")
    with opened:
        opened.sendall(head + early.begins)
        left = early.size - len(early.begins)
        while left > 0:
            opened.sendall(PIECE[:left])
            left -= len(PIECE)
        answer = b""
        while piece := opened.recv(65536):
            answer += piece
        return answer


def verdict(answer: bytes) -> tuple[int, str]:
    (one,) = read_answers(answer)
    assert one.headers["connection"] == "close"
    return one.status, one.json["error"]["code"]


@pytest.mark.parametrize("name", EARLY)
async def test_an_answer_is_read_after_the_whole_request(target: Gateway, name: str) -> None:
    early = EARLY[name]
    head = early.head(target.key)
    answer = await asyncio.to_thread(sent_whole, target.port, head, early)
    assert verdict(answer) == early.expected


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("name", EARLY)
async def test_it_is_read_over_tls(
    encrypted: Gateway, certificates: Certificates, name: str
) -> None:
    early = EARLY[name]
    client = certificates.client(shows_certificate=False)
    head = early.head(encrypted.key)
    answer = await asyncio.to_thread(sent_whole, encrypted.port, head, early, client)
    assert verdict(answer) == early.expected


@asynccontextmanager
async def all_held(target: Gateway, client: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    """Hold all connections that there are, each with a valid key."""
    models = b"GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %b\r\n\r\n"
    writers = []
    try:
        for _ in range(MAX_CONNECTIONS):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port, ssl=client)
            writers.append(writer)
            writer.write(models % target.key.encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        yield
    finally:
        for writer in writers:
            writer.close()


async def test_a_refused_connection_can_send_its_request(target: Gateway) -> None:
    early = Early(b"/v1/messages", _JSON, b"", (503, "unavailable"))
    async with all_held(target):
        answer = await asyncio.to_thread(sent_whole, target.port, early.head(target.key), early)
    (one,) = read_answers(answer)
    assert (one.status, one.json["type"], one.headers["retry-after"]) == (503, "error", "1")


async def test_a_refused_connection_with_tls_can_too(
    encrypted: Gateway, certificates: Certificates
) -> None:
    early = Early(b"/v1/messages", _JSON, b"", (503, "unavailable"))
    client = certificates.client(shows_certificate=False)
    head = early.head(encrypted.key)
    async with all_held(encrypted, client):
        answer = await asyncio.to_thread(sent_whole, encrypted.port, head, early, client)
    (one,) = read_answers(answer)
    assert (one.status, one.json["type"], one.headers["retry-after"]) == (503, "error", "1")
