"""A server whose methods a test writes, reached over a plain channel or within the process."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Union

import grpc
from google.protobuf.wrappers_pb2 import BytesValue

from services.common.grpc.channels import size_options
from services.common.grpc.inprocess.call import InProcessServer
from services.common.grpc.inprocess.channel import InProcessChannel
from services.common.grpc.inprocess.response_stream import deliver

Server = Union["grpc.aio.Server", InProcessServer]

MIB = 1 << 20
# Enough for whatever must happen; only a failing test waits so long.
SOON_S = 60.0
CARRIERS = ("plain", "inprocess")
KINDS = ("unary", "down", "up", "both")
# Metadata that tests send.
TEXT = ("x-text", "a=1")
BYTES = ("x-raw-bin", b"\x00\xff\x01")
_SERIALIZERS = {
    "request_deserializer": BytesValue.FromString,
    "response_serializer": BytesValue.SerializeToString,
}


def message(value: bytes = b"") -> BytesValue:
    return BytesValue(value=value)


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
        options = [
            *size_options(self.max_message_bytes),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)


@dataclass
class Served:
    """A running server, and a channel to it."""

    server: "Server"
    channel: grpc.aio.Channel

    def _method(self, kind: str, name: str) -> Any:
        method = f"/test.T/{name}"
        make = getattr(self.channel, kind)
        return make(method, BytesValue.SerializeToString, BytesValue.FromString)

    @property
    def unary(self) -> Any:
        return self._method("unary_unary", "Unary")

    @property
    def down(self) -> Any:
        return self._method("unary_stream", "Down")

    @property
    def up(self) -> Any:
        return self._method("stream_unary", "Up")

    @property
    def both(self) -> Any:
        return self._method("stream_stream", "Both")

    def opened(self, kind: str, **options: Any) -> Any:
        """Call the method of a kind, with an empty request if it has one request."""
        requests = (message(),) if kind in ("unary", "down") else ()
        return getattr(self, kind)(*requests, **options)


def methods(
    unary: Any = None, down: Any = None, up: Any = None, both: Any = None
) -> dict[str, Any]:
    """Return handlers of the kinds that a test needs."""
    made: dict[str, Any] = {}
    if unary:
        made["Unary"] = grpc.unary_unary_rpc_method_handler(unary, **_SERIALIZERS)
    if down:
        made["Down"] = grpc.unary_stream_rpc_method_handler(down, **_SERIALIZERS)
    if up:
        made["Up"] = grpc.stream_unary_rpc_method_handler(up, **_SERIALIZERS)
    if both:
        made["Both"] = grpc.stream_stream_rpc_method_handler(both, **_SERIALIZERS)
    return made


@asynccontextmanager
async def served(
    carrier: Carrier, interceptors: Sequence[Any] = (), **behaviors: Any
) -> AsyncIterator[Served]:
    """Serve methods."""
    server = carrier.server(methods(**behaviors), interceptors)
    channel = await carrier.start(server)
    try:
        yield Served(server, channel)
    finally:
        await channel.close()
        await server.stop(None)


def begin(awaitable: Any) -> "asyncio.Task[Any]":
    """Await something in a task."""

    async def run() -> Any:
        return await awaitable

    return asyncio.create_task(run())


async def soon(awaitable: Any) -> Any:
    """Await something that must happen, in the current task."""
    async with asyncio.timeout(SOON_S):
        return await awaitable


async def ended(call: Any, kind: str) -> Any:
    """Wait for the end of a call of a kind; return its response, or all of them."""
    return await soon(call) if kind in ("unary", "up") else await everything(call)


async def outcome(call: Any) -> tuple[grpc.StatusCode, str]:
    """Return code and text of a call, or of something else to await, that fails."""
    try:
        await soon(call)
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    raise AssertionError("the call did not fail")


async def everything(call: Any) -> list[bytes]:
    """Read a call to its end."""
    values = []
    while (response := await soon(call.read())) is not grpc.aio.EOF:
        values.append(response.value)
    return values


class Received:
    """A receiver that keeps messages; it is slow until `allowed` is set.

    Attributes:
        values: what was received.
        has_some: set with the first message.
    """

    def __init__(self, allowed: asyncio.Event | None = None) -> None:
        self.values: list[bytes] = []
        self.allowed = allowed
        self.has_some = asyncio.Event()

    def receive(self, received: BytesValue) -> bool:
        self.values.append(received.value)
        self.has_some.set()
        return self.allowed is not None

    async def drain(self) -> None:
        assert self.allowed is not None
        await self.allowed.wait()


async def delivered(call: Any) -> list[bytes]:
    """Return the responses that a call delivers."""
    receiver = Received()
    await soon(deliver(call, receiver))
    return receiver.values


# Ways to read a response stream.
READERS = {"read": everything, "deliver": delivered}


async def echo(request: BytesValue, context: Any) -> BytesValue:
    return request


async def echo_all(requests: Any, context: Any) -> AsyncIterator[BytesValue]:
    async for request in requests:
        yield request


def own(metadata: Any) -> list[Any]:
    """Return the entries that a test sent, without those that gRPC adds."""
    return [entry for entry in metadata or () if entry[0].startswith("x-")]


class Endless:
    """Servicers that wait until they are cancelled; streams send one message before."""

    def __init__(self):
        self.began, self.ended = asyncio.Event(), asyncio.Event()
        self.contexts = []

    async def unary(self, request, context):
        self.contexts.append(context)
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def down(self, request, context):
        yield message(b"a")
        await self.unary(request, context)

    async def both(self, requests, context):
        async for response in self.down(message(), context):
            yield response

    def served(self, carrier):
        return served(carrier, unary=self.unary, down=self.down, up=self.unary, both=self.both)
