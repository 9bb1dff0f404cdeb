"""A load generator: connections that each send, wait for the whole answer, and send again.

Or that leave, without waiting for it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from tests.bench import wire

_TIMEOUT_S = 60.0
_LAST_CHUNK = b"\r\n0\r\n\r\n"

# A whole HTTP request, or what makes each one.
Request = bytes | Callable[[], bytes]


class WrongAnswerError(Exception):
    """The server answered something else than it should."""


@dataclass(slots=True)
class Outcome:
    """Results of a run of requests; times in seconds.

    Attributes:
        wall: from the first request to the last answer.
        latencies: of each whole answer.
        firsts: from each request to its first piece of text (streams).
    """

    wall: float = 0.0
    latencies: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.latencies)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class _Caller(asyncio.Protocol):
    def __init__(self, request: Request, status: int, text_pieces: int, outcome: Outcome) -> None:
        self._request = request
        self._status = b"http/1.1 %d" % status
        self._pieces = text_pieces
        self._outcome = outcome
        self._chunks: list[bytes] = []
        self._size = 0
        self._wanted: int | None = None
        self._first = 0.0
        self._checked = False
        self.until = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(WrongAnswerError(f"connection lost: {error}"))

    def send(self) -> None:
        self._chunks.clear()
        self._size = 0
        self._wanted = None
        self._first = 0.0
        self._sent = time.perf_counter()
        self._transport.write(_made(self._request))

    def data_received(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        if self._wanted is None:
            self._read_head()
        if self._pieces and not self._first and wire.MARK in data:
            self._first = time.perf_counter()
        if self._wanted is not None and self._is_whole(data):
            self._finish()

    def close(self) -> None:
        self.done.cancel()
        self._transport.close()

    def _read_head(self) -> None:
        received = b"".join(self._chunks)
        head_end = received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = received[:head_end].lower()
        if not head.startswith(self._status):
            self._fail(received)
        elif b"chunked" in head:
            self._wanted = 0
        else:
            at = head.index(b"content-length:") + len(b"content-length:")
            self._wanted = head_end + 4 + int(head[at:].split(b"\r\n", 1)[0])

    def _is_whole(self, data: bytes) -> bool:
        if self._wanted:
            return self._size >= self._wanted
        tail = data if len(data) >= len(_LAST_CHUNK) else b"".join(self._chunks)
        return tail.endswith(_LAST_CHUNK)

    def _finish(self) -> None:
        now = time.perf_counter()
        if not self._checked or self._pieces:
            received = b"".join(self._chunks)
            if received.count(wire.MARK) != self._pieces:
                self._fail(received)
                return
            self._checked = True
        self._outcome.latencies.append(now - self._sent)
        if self._first:
            self._outcome.firsts.append(self._first - self._sent)
        if now < self.until:
            self.send()
        elif not self.done.done():
            self.done.set_result(None)

    def _fail(self, received: bytes) -> None:
        if not self.done.done():
            self.done.set_exception(WrongAnswerError(received[:2000].decode(errors="replace")))
        self._transport.abort()


async def drive(
    port: int,
    request: Request,
    *,
    connections: int,
    seconds: float,
    text_pieces: int = 0,
    status: int = 200,
) -> Outcome:
    """Send `request` over and over for that many seconds; every answer is waited for.

    Args:
        port: of the loopback address.
        request: what is sent.
        connections: how many at once, each with one request in flight.
        seconds: how long new requests are sent.
        text_pieces: pieces of text that each stream must hold; 0 for whole answers.
        status: what every answer must have.

    Raises:
        WrongAnswerError: an answer had another status, was broken or incomplete.
    """
    loop = asyncio.get_running_loop()
    outcome = Outcome()
    callers = []
    for _ in range(connections):
        _, caller = await loop.create_connection(
            lambda: _Caller(request, status, text_pieces, outcome), "127.0.0.1", port
        )
        callers.append(caller)
    started = time.perf_counter()
    for caller in callers:
        caller.until = started + seconds
        caller.send()
    try:
        async with asyncio.timeout(seconds + _TIMEOUT_S):
            await asyncio.gather(*(caller.done for caller in callers))
    finally:
        for caller in callers:
            caller.close()
    outcome.wall = time.perf_counter() - started
    return outcome


async def leave(port: int, request: Request, *, seconds: float, after: bytes = b"") -> int:
    """Send `request` over and over, each time on a connection that breaks; give how often.

    Args:
        port: of the loopback address.
        request: what is sent.
        seconds: how long.
        after: what is waited for before the connection breaks; nothing when empty.

    Raises:
        WrongAnswerError: the server left first.
    """
    until = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < until:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_made(request))
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await (reader.readuntil(after) if after else writer.drain())
        except asyncio.IncompleteReadError as error:
            raise WrongAnswerError(error.partial[:2000].decode(errors="replace")) from error
        finally:
            writer.transport.abort()
        count += 1
    return count


def _made(request: Request) -> bytes:
    return request if isinstance(request, bytes) else request()
