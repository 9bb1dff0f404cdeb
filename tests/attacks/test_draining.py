"""Answers to callers in mid-request when the gateway is stopped."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path

import aiohttp
import pytest

from tests.e2e.gateway import Gateway, gateway
from tests.waiting import until

DRAIN_S = 10
LONG_S = 300
NOBODY = 9  # a port on which no provider listens
CHAT, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
BODY = {
    "model": "sandbox/echo",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hello"}],
}


class Caller:
    """A connection that sends a request in pieces."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def begin(cls, target: Gateway, path: str, body: bytes) -> "Caller":
        """Send a head, and half of the body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {target.key}\r\n"
            f"anthropic-version: 2023-06-01\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body[: len(body) // 2])
        await writer.drain()
        return cls(reader, writer)

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def answer(self) -> tuple[str, str]:
        """Read to the end of the connection; return the head and the body."""
        head, _, body = (await self._reader.read()).decode().partition("\r\n\r\n")
        self._writer.close()
        return head, body


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[Gateway]:
    starting = gateway(tmp_path, NOBODY, settings=f"\n[limits]\ndrain_s = {DRAIN_S}\n")
    started = await asyncio.to_thread(starting.__enter__)
    yield started
    await asyncio.to_thread(starting.__exit__, None, None, None)


@pytest.mark.soak
async def test_requests_in_progress_end_or_get_an_error(target: Gateway) -> None:
    body = json.dumps(BODY).encode()
    stalled = json.dumps({**BODY, "model": "sandbox/stall-half", "stream": True}).encode()
    silent = json.dumps({**BODY, "model": "sandbox/stall", "fallback": "disabled"}).encode()
    idle, writer = await asyncio.open_connection("127.0.0.1", target.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n")
    await idle.readuntil(b'{"status": "ok"}')
    finishing = await Caller.begin(target, CHAT, body)
    unfinished = {path: await Caller.begin(target, path, body) for path in (CHAT, MESSAGES)}
    unanswered = await Caller.begin(target, CHAT, silent)
    unanswered.send(silent[len(silent) // 2 :])
    headers = {"Authorization": f"Bearer {target.key}", "anthropic-version": "2023-06-01"}
    async with aiohttp.ClientSession(target.address, headers=headers) as http:
        streams = {
            path: await http.post(path, data=stalled, headers={"Content-Type": "application/json"})
            for path in (CHAT, MESSAGES)
        }
        for stream in streams.values():
            assert stream.status == 200
        began = time.monotonic()
        os.kill(target.process.pid, signal.SIGTERM)
        async with asyncio.timeout(DRAIN_S):
            assert await idle.read() == b""
        writer.close()
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", target.port)
        finishing.send(body[len(body) // 2 :])
        async with asyncio.timeout(DRAIN_S):
            head, answer = await finishing.answer()
        assert head.startswith("HTTP/1.1 200 ")
        assert "connection: close" in head.lower()
        assert "Hello" in answer
        # All others keep it waiting until its time is up.
        for path, caller in (*unfinished.items(), (CHAT, unanswered)):
            head, answer = await caller.answer()
            assert head.startswith("HTTP/1.1 503 "), head
            assert "retry-after: 1" in head.lower() and "connection: close" in head.lower()
            error = json.loads(answer)["error"]
            assert "stopping" in error["message"]
            assert error["type"] == ("server_error" if path == CHAT else "overloaded_error")
        chat = (await streams[CHAT].text()).strip().split("\n\n")
        assert json.loads(chat[-1].removeprefix("data: "))["error"]["code"] == "unavailable"
        messages = (await streams[MESSAGES].text()).strip().split("\n\n")
        assert messages[-1].startswith("event: error\n")
        assert '"overloaded_error"' in messages[-1]
    assert await asyncio.to_thread(target.process.stop) == 0
    # aiohttp alone waits for the time twice, and the services begin after that.
    assert time.monotonic() - began < 2 * DRAIN_S


async def test_a_gateway_with_nothing_in_hand_stops_at_once(target: Gateway) -> None:
    async with aiohttp.ClientSession(target.address) as http:
        for _ in range(3):
            async with http.get("/healthz") as answer:
                assert answer.status == 200
        began = time.monotonic()
        assert await asyncio.to_thread(target.process.stop) == 0
        assert time.monotonic() - began < DRAIN_S


async def test_load_balancers_are_told_before_it_closes(tmp_path: Path) -> None:
    settings = f"\n[server]\ndrain_notice_s = {LONG_S}\n"
    starting = gateway(tmp_path, NOBODY, settings=settings)
    target = await asyncio.to_thread(starting.__enter__)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: gateway\r\n\r\n")
        assert await reader.readuntil(b'{"status": "ready"}')
        os.kill(target.process.pid, signal.SIGTERM)
        async with aiohttp.ClientSession(target.address) as http:

            async def is_unready() -> bool:
                async with http.get("/readyz") as answer:
                    return answer.status == HTTPStatus.SERVICE_UNAVAILABLE

            # New connections are accepted all the time.
            await until(is_unready)
        # Nothing has been sent on the idle connection, and a request that crosses is served.
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ") and b"connection: close" in head.lower()
        assert body == b'{"status": "ok"}'
        writer.close()
    finally:
        # The second signal ends the notice.
        await asyncio.to_thread(starting.__exit__, None, None, None)
