"""A server whose methods a test writes, reached over a plain channel or over a link."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from gateway.link.v1 import link_pb2_grpc
from services.common.channels import size_options
from services.common.link.channel import LinkChannel
from services.common.link.server import LinkServer

MIB = 1 << 20
# Enough for whatever must happen; only a failing test waits so long.
SOON_S = 60.0
CARRIERS = ("plain", "link")
# Metadata that tests send.
TEXT = ("x-text", "a=1")
BYTES = ("x-raw-bin", b"\x00\xff\x01")


class Carrier:
    """How calls travel: what makes servers and channels of one kind."""

    def __init__(self, kind: str, max_message: int = MIB) -> None:
        self.kind = kind
        self.max_message = max_message
        self.links: LinkServer | None = None

    def server(
        self, methods: dict[str, Any], interceptors: Sequence[Any] = ()
    ) -> "grpc.aio.Server":
        """Make a server of `/test.T/<name>` methods."""
        handlers = grpc.method_handlers_generic_handler("test.T", methods)
        options = [*size_options(max(self.max_message, MIB)), ("grpc.so_reuseport", 0)]
        if self.kind == "plain":
            options = [*size_options(self.max_message), ("grpc.so_reuseport", 0)]
            server = grpc.aio.server(interceptors=interceptors, options=options)
            server.add_generic_rpc_handlers((handlers,))
            return server
        server = grpc.aio.server(options=options)
        self.links = LinkServer(interceptors, max_message=self.max_message)
        self.links.add_generic_rpc_handlers((handlers,))
        link_pb2_grpc.add_LinkServicer_to_server(self.links, server)
        return server

    def channel(self, address: str) -> grpc.aio.Channel:
        """Make a channel."""
        options = [
            *size_options(self.max_message if self.kind == "plain" else max(self.max_message, MIB)),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        plain = grpc.aio.insecure_channel(address, options=options)
        return plain if self.kind == "plain" else LinkChannel(plain, max_message=self.max_message)

    async def stop(self, server: "grpc.aio.Server", grace_s: float | None) -> None:
        """Stop a server."""
        if self.links is not None:
            self.links.go_away()
        await server.stop(grace_s)


@dataclass
class Served:
    """A server that runs, and a channel to it."""

    carrier: Carrier
    server: "grpc.aio.Server"
    channel: grpc.aio.Channel
    port: int

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
    """Give handlers of whatever kinds a test wants."""
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
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = carrier.channel(f"127.0.0.1:{port}")
    try:
        yield Served(carrier, server, channel, port)
    finally:
        await channel.close()
        await carrier.stop(server, None)


async def soon(awaitable: Any) -> Any:
    """Await something that must happen."""
    return await asyncio.wait_for(awaitable, SOON_S)


async def outcome(call: Any) -> tuple[grpc.StatusCode, str]:
    """Give code and text of a call that fails."""
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
    """Give the entries that a test sent, without those that gRPC adds."""
    return [entry for entry in metadata or () if entry[0].startswith("x-")]
