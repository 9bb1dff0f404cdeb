"""Bodies that a caller begins to send and never ends, to hold memory and connections."""

import asyncio
from contextlib import suppress

import pytest

from tests.attacks.observer import Observer
from tests.e2e.gateway import Gateway

CONNECTIONS = 40
LENGTH = 59 << 20
SENT = 29 << 20
CHUNK = b" " * (1 << 20)


@pytest.fixture(scope="module")
def settings() -> str:
    """Let stalled bodies be cut within the test."""
    return "[limits]\nbody_idle_s = 4\n"


Connection = tuple[asyncio.Task[bytes], asyncio.StreamWriter]


async def begin(target: Gateway, key: str) -> Connection:
    """Send half of a body, unless it is refused; return what becomes the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    head = (
        "POST /beta/v1/chat/completions HTTP/1.1\r\n"
        "Host: gateway\r\n"
        f"Authorization: Bearer {key}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {LENGTH}\r\n\r\n"
    )
    answering = asyncio.create_task(reader.readuntil(b"}"))
    writer.write(head.encode())
    sending = asyncio.create_task(send(writer))
    await asyncio.wait({answering, sending}, return_when=asyncio.FIRST_COMPLETED)
    sending.cancel()
    return answering, writer


async def send(writer: asyncio.StreamWriter) -> None:
    """Write what is sent of a body, or what fits before the connection is closed."""
    with suppress(ConnectionError):
        for _ in range(SENT // len(CHUNK)):
            writer.write(CHUNK)
            await writer.drain()


@pytest.mark.soak
async def test_bodies_that_stall_half_way(
    target: Gateway, attacker_key: str, observer: Observer
) -> None:
    connections: list[Connection] = []
    async with observer.watch() as measured:
        for _ in range(CONNECTIONS):
            connections.append(await begin(target, attacker_key))
        answers = [await answering for answering, _ in connections]
    for _, writer in connections:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    stalled = [answer for answer in answers if answer.startswith(b"HTTP/1.1 408 ")]
    refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 429 ")]
    # Two have room at once: they are cut, and the others told to come again; on a slow machine
    # some of those come when the first have been cut.
    assert len(stalled) >= 2
    assert len(stalled) + len(refused) == CONNECTIONS
    assert all(b"body: no data received for 4 seconds" in answer for answer in stalled)
    assert all(b"Retry-After: 1" in answer for answer in refused)
    assert all(b'"type":"rate_limit_error"' in answer for answer in refused)
    measured.assert_harmless()
