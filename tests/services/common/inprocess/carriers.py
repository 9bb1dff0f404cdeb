"""A server whose methods a test writes, reached over a plain channel or in the process."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Union

import grpc

from services.common.channels import size_options
from services.common.inprocess.channel import InProcessChannel
from services.common.inprocess.server import InProcessServer

Server = Union["grpc.aio.Server", InProcessServer]

MIB = 1 << 20
# Enough for whatever must happen; only a failing test waits so long.
SOON_S = 60.0
CARRIERS = ("plain", "inprocess")
# Metadata that tests send.
TEXT = ("x-text", "a=1")
BYTES = ("x-raw-bin", b"\x00\xff\x01")


class Carrier:
    """How calls travel: what makes servers and channels of one kind."""

    def __init__(self, kind: str, max_message_bytes: int = MIB) -> None:
        self.kind = kind
        self.max_message_bytes = max_message_bytes

    def server(self, methods: dict[str, Any], interceptors: Sequence[Any] = ()) -> "Server":
        """Make a server of `/test.T/<name>` methods."""
        handlers = grpc.method_handlers_generic_handler("test.T", methods)
        server: Server
        if self.kind == "inprocess":
            server = InProcessServer(interceptors, max_message_bytes=self.max_message_bytes)
        else:
            options = [*size_options(self.max_message_bytes), ("grpc.so_reuseport", 0)]
            server = grpc.aio.server(interceptors=interceptors, options=options)
        server.add_generic_rpc_handlers((handlers,))
        return server

    async def start(self, server: "Server") -> grpc.aio.Channel:
        """Start a server; return a channel to it."""
        if isinstance(server, InProcessServer):
            server.start()
            return InProcessChannel(server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return self.channel(f"127.0.0.1:{port}")

    def channel(self, address: str) -> grpc.aio.Channel:
        """Make a plain channel."""
        options = [
            *size_options(self.max_message_bytes),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        return grpc.aio.insecure_channel(address, options=options)


@dataclass
class Served:
    """A server that runs, and a channel to it."""

    carrier: Carrier
    server: "Server"
    channel: grpc.aio.Channel

    @property
    def unary(self) -> Any:
        return self.channel.unary_unary("/test.T/Unary")

    @property
    def down(self) -> Any:
        return self.channel.unary_stream("/test.T/Down")

    @property
    def up(self) -> Any:
        return self.channel.stream_unary("/test.T/Up")

    @property
    def both(self) -> Any:
        return self.channel.stream_stream("/test.T/Both")


def methods(
    unary: Any = None, down: Any = None, up: Any = None, both: Any = None
) -> dict[str, Any]:
    """Return handlers of whatever kinds a test wants."""
    made: dict[str, Any] = {}
    if unary:
        made["Unary"] = grpc.unary_unary_rpc_method_handler(unary)
    if down:
        made["Down"] = grpc.unary_stream_rpc_method_handler(down)
    if up:
        made["Up"] = grpc.stream_unary_rpc_method_handler(up)
    if both:
        made["Both"] = grpc.stream_stream_rpc_method_handler(both)
    return made


@asynccontextmanager
async def served(
    carrier: Carrier, interceptors: Sequence[Any] = (), **behaviors: Any
) -> AsyncIterator[Served]:
    """Serve methods; give a channel to them."""
    server = carrier.server(methods(**behaviors), interceptors)
    channel = await carrier.start(server)
    try:
        yield Served(carrier, server, channel)
    finally:
        await channel.close()
        await server.stop(None)


async def soon(awaitable: Any) -> Any:
    """Await something that must happen."""
    return await asyncio.wait_for(awaitable, SOON_S)


async def outcome(call: Any) -> tuple[grpc.StatusCode, str]:
    """Return code and text of a call that fails."""
    try:
        await soon(call)
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    raise AssertionError("the call did not fail")


async def everything(call: Any) -> list[Any]:
    """Read a call to its end."""
    got = []
    while (message := await soon(call.read())) is not grpc.aio.EOF:
        got.append(message)
    return got


async def echo(request: bytes, context: Any) -> bytes:
    return request


async def echo_all(requests: Any, context: Any) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request


def own(metadata: Any) -> list[Any]:
    """Return the entries that a test sent, without those that gRPC adds."""
    return [entry for entry in metadata or () if entry[0].startswith("x-")]
