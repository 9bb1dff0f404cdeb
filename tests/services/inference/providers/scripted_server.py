"""A server that answers with exactly the bytes a test writes, and tells who left when."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from services.common.http import Client
from services.common.settings import Limits
from services.inference.providers import failures
from services.inference.providers.protocols import Classify
from services.inference.providers.upstream import Upstream

SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"


@dataclass(frozen=True)
class Request:
    """A received request: its target, headers by lower-case name, and the body."""

    target: str
    headers: dict[str, str]
    body: bytes


class Connection:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        """Write one chunk of a chunked body."""
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def answer(
        self, body: bytes, status: int = 200, headers: str = "content-type: application/json"
    ) -> None:
        """Write a whole answer."""
        head = f"HTTP/1.1 {status} S\r\n{headers}\r\ncontent-length: {len(body)}\r\n\r\n"
        await self.send(head.encode() + body)

    def close(self) -> None:
        """End the connection."""
        self._writer.close()

    def reset(self) -> None:
        """Break the connection."""
        self._writer.transport.abort()

    async def until_left(self) -> None:
        """Say nothing until the client closes the connection."""
        while await self._reader.read(1 << 16):
            pass


Script = Callable[[Connection], Awaitable[None]]


@dataclass
class ScriptedServer:
    """Plays a script for each request; a connection stays open after one that returns.

    Attributes:
        script: what to do next.
        url: the base URL.
        requests: what came, in order.
        connections: how many were opened.
        writers: of the connections that are open.
        left: set when a script was still waiting and the client left.
    """

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    script: Script | None = None

    def plays(self, script: Script) -> None:
        """Play this for each request from now on."""
        self.script = script

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        self.writers.append(writer)
        connection = Connection(reader, writer)
        try:
            while request := await _read(reader):
                self.requests.append(request)
                assert self.script is not None
                await self.script(connection)
                if writer.is_closing():
                    break
        except ConnectionError:
            pass
        finally:
            self.left.set()
            self.writers.remove(writer)
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode().strip().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    originals = dict((line.split(": ", 1)[0].lower(), line.split(": ", 1)[1]) for line in lines)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(first.split()[1], originals, body)


@asynccontextmanager
async def scripted_server() -> AsyncIterator[ScriptedServer]:
    """Serve on a free port of the loopback."""
    scripted = ScriptedServer()
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    scripted.url = f"http://127.0.0.1:{port}/v1"
    async with server:
        yield scripted


class LiveCalls:
    """Calls in progress, and the most there were."""

    def __init__(self) -> None:
        self._count = 0
        self.most = 0

    @property
    def count(self) -> int:
        return self._count

    @count.setter
    def count(self, count: int) -> None:
        self._count = count
        self.most = max(self.most, count)


class ScriptedUpstream:
    """A scripted server and an upstream that reaches it.

    Attributes:
        server: the server.
        live: the calls of the upstream in progress.
    """

    def __init__(self, server: ScriptedServer, client: Client) -> None:
        self.server = server
        self.live = LiveCalls()
        self._client = client

    def upstream(
        self, url: str | None = None, *, classify: Classify = failures.classify, **limits: float
    ) -> Upstream:
        """Return an upstream; limits left out are long enough for a busy machine."""
        bounds = Limits.model_validate({"step_timeout_s": 60, "stream_idle_s": 60, **limits})
        headers = {"Authorization": "Bearer very-secret-word"}
        return Upstream(
            "acme",
            url or self.server.url,
            headers,
            bounds,
            self._client,
            self.live,
            now=lambda: 1_000_000_000.0,
            classify=classify,
        )


@asynccontextmanager
async def scripted_upstream(client: Any = None) -> AsyncIterator[ScriptedUpstream]:
    """Return a server and upstreams for it; `client` stands in for the gateway's own."""
    async with (
        scripted_server() as server,
        client or Client(connect_timeout_s=60, settle_s=0) as using,
    ):
        yield ScriptedUpstream(server, using)
