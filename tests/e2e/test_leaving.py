"""A caller that leaves ends the call at the provider, whichever moment it picks."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.e2e.gateway import Gateway

# Enough for whatever must happen on a busy machine; a call that nobody ends goes on for minutes.
WITHIN_S = 30.0
# What is sent, and what has been read when the caller goes: nothing, or the first text.
WINDOWS = {
    "before the headers": ("stall", True, b""),
    "before the first token": ("stall-open", True, b""),
    "mid-stream": ("stall-half", True, b"Sandbox"),
    "while a whole answer is made": ("stall", False, b""),
}


class Upstream:
    """The sandbox upstream's own account of what is open."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._address = f"http://127.0.0.1:{port}/sandbox/live"

    async def until_open(self, count: int) -> None:
        """Wait until that many calls are open."""
        async with asyncio.timeout(WITHIN_S):
            while await self._open() != count:
                pass

    async def _open(self) -> int:
        async with self._session.get(self._address) as answer:
            count: int = (await answer.json())["open"]
            return count


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


async def ask(front: Gateway, path: str, model: str, stream: bool) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", front.port)
    writer.write(request(front, path, model, stream))
    return writer


def request(front: Gateway, path: str, model: str, stream: bool) -> bytes:
    body = json.dumps(
        {
            "model": model,
            "max_tokens": 1000,
            "stream": stream,
            "fallback": "disabled",
            "messages": [{"role": "user", "content": "hello there " * 20}],
        }
    )
    return (
        f"POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {front.key}\r\n"
        "anthropic-version: 2026-10-21\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n{body}"
    ).encode()


@pytest.mark.parametrize("path", ["/beta/v1/chat/completions", "/beta/v1/messages"])
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("window", WINDOWS)
async def test_the_upstream_call_ends_with_its_caller(
    front: Gateway,
    upstream_port: int,
    session: aiohttp.ClientSession,
    window: str,
    provider: str,
    path: str,
) -> None:
    name, stream, read_first = WINDOWS[window]
    upstream = Upstream(session, upstream_port)
    await upstream.until_open(0)
    reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
    writer.write(request(front, path, f"{provider}/{name}", stream))
    await upstream.until_open(1)
    if read_first:
        async with asyncio.timeout(WITHIN_S):
            await reader.readuntil(read_first)
    writer.close()
    await upstream.until_open(0)


async def test_many_aborted_streams_leave_nothing_open(
    front: Gateway, upstream_port: int, session: aiohttp.ClientSession
) -> None:
    upstream = Upstream(session, upstream_port)
    await upstream.until_open(0)
    for _ in range(4):
        writers = [
            await ask(front, "/beta/v1/messages", f"{provider}/stall-half", True)
            for provider in ("openai", "anthropic") * 25
        ]
        await upstream.until_open(len(writers))
        for writer in writers:
            writer.transport.abort()
        await upstream.until_open(0)
