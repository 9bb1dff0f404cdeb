"""Header values that no client means: each is answered in the endpoint's format."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import pytest
from yarl import URL

from tests.attacks.structure import Attempt
from tests.attacks.valid import ErrorFormat
from tests.attacks.verdict import fault
from tests.gateway_in_process import Gateway, running_gateway

NAMES = (
    *("anthropic-beta", "anthropic-version", "x-request-id", "User-Agent", "Accept", "Range"),
    *("If-None-Match", "If-Range", "Content-Type", "compat-version", "x-api-key", "Cookie"),
    *("Accept-Encoding", "X-Forwarded-For", "traceparent", "Origin"),
)
VALUES = (b"", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"x" * 4_000, b",,,", b'"', b"a/b;c=\xff")
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}
TARGETS: tuple[tuple[str, str, ErrorFormat, bytes], ...] = (
    ("POST", "/beta/v1/chat/completions", "A", json.dumps(CHAT).encode()),
    ("POST", "/coding/v1/messages", "B", json.dumps({**CHAT, "max_tokens": 9}).encode()),
    ("POST", "/article/v1/doc/list", "envelope", b"{}"),
    ("GET", "/beta/v1/models", "B", b""),
    ("GET", "/beta/v1/files/file-01ARZ3NDEKTSV4RRFFQ69G5FAV/content", "B", b""),
)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path) as gateway:
        yield gateway


async def exchange(url: str, head: bytes, body: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send a request byte by byte as it is, for clients check what they send."""
    address = URL(url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(head + b"Connection: close\r\n\r\n" + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    first, _, content = answer.partition(b"\r\n\r\n")
    status, *lines = first.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(status.split()[1]), headers, content


async def test_any_value_of_a_header_is_answered(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    for (method, path, api_format, body), name, value in product(TARGETS, NAMES, VALUES):
        fields = {
            "Host": b"localhost",
            "x-api-key": gateway.key.encode(),
            "compat-version": b"2023-06-01",
            "Content-Type": b"application/json",
            "Content-Length": str(len(body)).encode(),
            name: value,
        }
        head = f"{method} {path} HTTP/1.1\r\n".encode()
        head += b"".join(f"{key}: ".encode() + one + b"\r\n" for key, one in fields.items())
        status, headers, answer = await exchange(gateway.url, head, body)
        attempt = Attempt(method, path, api_format, body, "")
        assert not fault(attempt, status, headers, answer), (name, value, path, answer)
    assert "unforeseen failure" not in caplog.text
