"""The cost of a very long conversation: the time until the provider gets its first byte, and the
memory of each process on the way.

The provider is in this process, and so its clock is that of the caller.
"""

import asyncio
import tempfile
import time
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import cast

from tests.bench import processes, wire
from tests.bench.load import WrongAnswerError
from tests.e2e import gateway as real

# Most of a request are 100,000; the user writes the first and the last, as Anthropic's API wants.
MESSAGES = 99_999
BODY_BYTES = 20_000_000
_TIMEOUT_S = 60.0
# What a request may lose on its way: its head, and fields that a dialect has no use for.
_MOST_OF_HEAD = 1_000
_WORKER = "services.worker"
# Parses large bodies for the worker, from the first of them on.
_PARSER = "facade.parser_process"
_ANSWERED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"

Samples = MutableMapping[str, list[float]]


async def measure(samples: Samples, cpus: Sequence[int], *, rounds: int) -> None:
    """Add the figures of long conversations, over every pair of dialects.

    Args:
        samples: what is added to.
        cpus: those that the gateway may use.
        rounds: how often each is sent.
    """
    provider = _Provider()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Asked(provider), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        running = real.gateway(Path(folder), port, cpus=cpus)
        # It asks the provider for its models, which is answered here meanwhile.
        gateway = await asyncio.to_thread(running.__enter__)
        try:
            family = processes.family(gateway.process.pid)
            worker = processes.of_modules(family, [_WORKER])[_WORKER]
            await _ask(gateway.port, _request("openai", "openai", gateway.key, 1), provider)
            idle = processes.memory([worker]).rss
            await _ask(gateway.port, _request("openai", "openai", gateway.key, MESSAGES), provider)
            family = processes.family(gateway.process.pid)
            parser = processes.of_modules(family, [_PARSER])[_PARSER]
            own = [worker, parser]
            idle += processes.memory([parser]).rss
            for _ in range(rounds):
                for caller, upstream in wire.PAIRS:
                    request = _request(caller, upstream, gateway.key, MESSAGES)
                    for pid in own:
                        processes.forget_peak(pid)
                    before = processes.cpu_seconds(own)
                    waited = await _ask(gateway.port, request, provider)
                    samples["large cpu"].append(processes.cpu_seconds(own) - before)
                    samples[f"large {caller}→{upstream}"].append(waited)
                    samples["large body"].append(len(request) / (1 << 20))
                    most = sum(processes.peak(pid) for pid in own)
                    samples["large memory"].append(most - idle)
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)
    server.close()


def conversation(messages: int) -> list[dict[str, str]]:
    """Return the last of the messages that a body of 20 MB has, so many of them."""
    room = BODY_BYTES // MESSAGES - len('{"role":"assistant","content":"12345: "},')
    text = ("What is said in a message, of a length that most have. " * 4)[:room]
    roles = ("assistant", "user")
    return [
        {"role": roles[number % 2], "content": f"{number:05}: {text}"}
        for number in range(messages, 0, -1)
    ]


def _request(caller: wire.Dialect, upstream: wire.Dialect, key: str, messages: int) -> bytes:
    fields = {"messages": conversation(messages)}
    return wire.request(caller, f"{upstream}/bench", key, fields=fields)


class _Provider:
    """The provider: it measures the last conversation, and answers.

    Attributes:
        first: when the first byte of it came, by `time.perf_counter`.
        size: bytes of its body.
    """

    def __init__(self) -> None:
        self.first = 0.0
        self.size = 0
        self._openai, self._anthropic = (
            _ANSWERED % len(body) + body
            for body in (wire.answer("openai"), wire.answer("anthropic"))
        )

    def answer(self, path: bytes) -> bytes:
        return self._anthropic if path.endswith(b"/messages") else self._openai


class _Asked(asyncio.Protocol):
    """A connection to the provider."""

    def __init__(self, provider: _Provider) -> None:
        self._provider = provider
        self._first = 0.0
        self._begun = b""
        self._left = 0
        self._answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._left:
            self._first = self._first if self._begun else time.perf_counter()
            self._begun += data
            head, separator, data = self._begun.partition(b"\r\n\r\n")
            if not separator:
                return
            self._begun = b""
            self._begin(head)
        self._left -= len(data)
        if not self._left:
            self._transport.write(self._answer)

    def _begin(self, head: bytes) -> None:
        method, path, _ = head.split(b" ", 2)
        self._left = _length(head)
        self._answer = self._provider.answer(path)
        # The gateway asks for models too, whenever it likes.
        if method == b"POST":
            self._provider.first, self._provider.size = self._first, self._left


class _Caller(asyncio.Protocol):
    """Sends one request, and has the answer to it."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._received = b""
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_exception(WrongAnswerError(f"connection lost: {error}"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        if body and len(body) == _length(head):
            self.answer.set_result(self._received)


async def _ask(port: int, request: bytes, provider: _Provider) -> float:
    """Return the seconds from sending a request to its first byte at the provider."""
    began = time.perf_counter()
    transport, caller = await asyncio.get_running_loop().create_connection(
        lambda: _Caller(request), "127.0.0.1", port
    )
    async with asyncio.timeout(_TIMEOUT_S):
        answer = await caller.answer
    transport.close()
    if not answer.startswith(b"HTTP/1.1 200") or provider.size < len(request) - _MOST_OF_HEAD:
        raise WrongAnswerError(answer[:2000].decode(errors="replace"))
    return provider.first - began


def _length(head: bytes) -> int:
    head = head.lower()
    at = head.index(b"content-length:") + len(b"content-length:")
    return int(head[at:].split(b"\r\n", 1)[0])
