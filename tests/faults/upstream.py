"""A provider of both dialects that can fail in every way a socket can.

It is no HTTP server but a few lines over the raw bytes, so that it can break off
wherever a test wants. Each model plays its own script: what to do with the first
request, the second, and so on; the last of it stays.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import orjson

from tests.faults.wire import Dialect

_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_LAST_CHUNK = b"0\r\n\r\n"
_NO_MODELS = b'{"object":"list","data":[]}'


class Exchange:
    """One request, and the provider's end of its connection.

    Attributes:
        dialect: whose JSON it is.
        body: what was asked.
        at: when, by the loop's clock.
        left: set when the connection is gone, whoever ended it.
    """

    def __init__(self, dialect: Dialect, body: dict[str, Any], transport: asyncio.Transport):
        self.dialect = dialect
        self.body = body
        self.at = asyncio.get_running_loop().time()
        self.left = asyncio.Event()
        self._transport = transport

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return cast(str, self.body["model"])

    @property
    def streams(self) -> bool:
        """Whether a stream was asked for."""
        return bool(self.body.get("stream"))

    @property
    def prefill(self) -> str:
        """The text at the end that the answer is to continue."""
        last = self.body["messages"][-1]
        if last["role"] != "assistant":
            return ""
        content = last["content"]
        return content if isinstance(content, str) else "".join(part["text"] for part in content)

    def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._transport.write(data)

    def answer(self, body: bytes, status: int = 200, headers: str = "") -> None:
        """Write a whole answer."""
        self.send(whole_head(len(body), status, headers) + body)

    def open_stream(self) -> None:
        """Write the head of a stream."""
        self.send(_STREAM_HEAD)

    def chunk(self, data: bytes) -> None:
        """Write one chunk of a stream."""
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self) -> None:
        """End the chunked body as HTTP wants it."""
        self.send(_LAST_CHUNK)

    def close(self) -> None:
        """End the connection after what was written."""
        self._transport.close()

    def reset(self) -> None:
        """Break the connection."""
        self._transport.abort()


def whole_head(length: int, status: int = 200, headers: str = "") -> bytes:
    """Return the head of an answer of `length` bytes of JSON."""
    return (
        f"HTTP/1.1 {status} S\r\ncontent-type: application/json\r\n{headers}"
        f"content-length: {length}\r\n\r\n"
    ).encode()


Action = Callable[[Exchange], Awaitable[None]]


class FaultUpstream:
    """The provider.

    Attributes:
        url: its address, without a path.
        seen: every request, in order.
    """

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[Exchange] = []
        self._scripts: dict[str, Sequence[Action]] = {}
        self._busy: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> int:
        """How many requests are being answered, or waited with, now."""
        return len(self._busy)

    def plays(self, model: str, *actions: Action) -> None:
        """Set a model's actions, one for each request; the last one serves all that follow."""
        self._scripts[model] = actions

    def asked(self, model: str) -> list[Exchange]:
        """Return the requests for a model."""
        return [exchange for exchange in self.seen if exchange.model == model]

    def forget(self) -> None:
        """Forget the requests and scripts there were."""
        self.seen.clear()
        self._scripts.clear()

    def begin(self, exchange: Exchange) -> None:
        """Do what the script says."""
        script = self._scripts[exchange.model]
        action = script[min(len(self.asked(exchange.model)), len(script) - 1)]
        self.seen.append(exchange)
        playing = asyncio.ensure_future(action(exchange))
        self._busy.add(playing)
        playing.add_done_callback(self._busy.discard)


class _Connection(asyncio.Protocol):
    """One connection; requests come one after the other."""

    def __init__(self, upstream: FaultUpstream) -> None:
        self._upstream = upstream
        self._received = b""
        self._current: Exchange | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._current is not None:
            self._current.left.set()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, remainder = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        first, *lines = head.decode().lower().split("\r\n")
        method, path, _ = first.split(" ", 2)
        length = int(dict(line.split(": ", 1) for line in lines).get("content-length", "0"))
        if len(remainder) < length:
            return
        self._received = remainder[length:]
        if method == "get":  # the gateway asks which models there are
            self._transport.write(whole_head(len(_NO_MODELS)) + _NO_MODELS)
            return
        dialect: Dialect = "anthropic" if path.endswith("/messages") else "openai"
        self._current = Exchange(dialect, orjson.loads(remainder[:length]), self._transport)
        self._upstream.begin(self._current)


@asynccontextmanager
async def fault_upstream() -> AsyncIterator[FaultUpstream]:
    """Serve on a free port of the loopback."""
    upstream = FaultUpstream()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(upstream), "127.0.0.1", 0)
    upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield upstream
