"""The client side: a replacement for `grpc.aio.Channel`."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import grpc

from services.common.inprocess.calls import (
    Deserialize,
    Requests,
    StreamStreamCall,
    StreamUnaryCall,
    UnaryStreamCall,
    UnaryUnaryCall,
)
from services.common.inprocess.direct import (
    DirectMethod,
    DirectStreamMethod,
    direct_method,
    direct_stream_method,
)
from services.common.inprocess.exchange import Exchange, Metadata
from services.common.inprocess.server import InProcessServer

# Maximum size of metadata with 32 bytes per entry, as in HTTP/2 and gRPC.
MAX_METADATA = 16 << 10
_ENTRY_COST = 32

Entries = grpc.aio.Metadata | Sequence[tuple[str, str | bytes]]


class InProcessChannel(grpc.aio.Channel):
    """A `grpc.aio.Channel` to a server in this process."""

    def __init__(self, server: InProcessServer) -> None:
        """Create a channel to a server, which may start later."""
        self._server = server
        self._calls: set[Exchange] = set()
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None  # set at the first call

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.close()

    def unary_unary(
        self,
        method: str,
        request_serializer: object = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool | None = False,
    ) -> "UnaryUnaryMethod":
        """Return a callable for unary calls."""
        return UnaryUnaryMethod(self, method, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: object = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool | None = False,
    ) -> "UnaryStreamMethod":
        """Return a callable for calls with a response stream."""
        return UnaryStreamMethod(self, method, response_deserializer)

    def stream_unary(
        self,
        method: str,
        request_serializer: object = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool | None = False,
    ) -> "StreamUnaryMethod":
        """Return a callable for calls with a request stream."""
        return StreamUnaryMethod(self, method, response_deserializer)

    def stream_stream(
        self,
        method: str,
        request_serializer: object = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool | None = False,
    ) -> "StreamStreamMethod":
        """Return a callable for calls with streams both ways."""
        return StreamStreamMethod(self, method, response_deserializer)

    def direct(self, method: str) -> DirectMethod:
        """Return a function that calls a unary method in the current task; see `direct_method`."""
        return direct_method(self._server, method)

    def direct_stream(self, method: str) -> DirectStreamMethod:
        """Like `direct`, for a method with a response stream."""
        return direct_stream_method(self._server, method)

    def begin(
        self,
        method: str,
        request: Any,
        metadata: Entries | None,
        timeout: float | None,
        unsupported: object,
        streams_requests: bool = False,
        streams_responses: bool = False,
    ) -> Exchange:
        """Start a call; `request` is None if it `streams_requests`.

        Raises:
            grpc.aio.UsageError: the channel is closed, or credentials or compression are requested.
        """
        if self._is_closed:
            raise grpc.aio.UsageError("Channel is closed.")
        if unsupported:
            raise grpc.aio.UsageError("calls in a process take neither credentials nor compression")
        entries: Metadata = tuple(metadata) if metadata else ()
        size = 0
        if not streams_requests:
            size = len(request) if isinstance(request, bytes) else request.ByteSize()
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        exchange = Exchange(
            loop,
            method,
            entries,
            request,
            self._calls,
            self._server.max_message_bytes,
            timeout,
            streams_requests,
            streams_responses,
        )
        if size > exchange.max_message_bytes:
            exchange.refuse(size)
            return exchange
        size = 0
        for name, value in entries:
            size += len(name) + len(value) + _ENTRY_COST
        if size > MAX_METADATA:
            exchange.leave(
                grpc.StatusCode.RESOURCE_EXHAUSTED, f"metadata has more than {MAX_METADATA} bytes"
            )
        else:
            self._server.begin(exchange)
        return exchange

    async def close(self, grace: float | None = None) -> None:
        """Reject new calls, and cancel those still running after `grace` seconds."""
        self._is_closed = True
        if grace and self._calls:
            await asyncio.wait(
                [asyncio.ensure_future(exchange.over()) for exchange in self._calls], timeout=grace
            )
        for exchange in list(self._calls):
            exchange.cancel("Channel closed!")

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Return READY, or SHUTDOWN after closing."""
        if self._is_closed:
            return grpc.ChannelConnectivity.SHUTDOWN
        return grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the channel has another state."""
        if self.get_state() is last_observed_state:
            await asyncio.get_running_loop().create_future()

    async def channel_ready(self) -> None:
        """Return at once."""


class _Method:
    """A method of a service; base class of the callables."""

    def __init__(
        self, channel: InProcessChannel, method: str, deserialize: Deserialize | None
    ) -> None:
        self._channel = channel
        self._method = method
        self._deserialize = deserialize


class UnaryUnaryMethod(_Method, grpc.aio.UnaryUnaryMultiCallable[Any, Any]):
    """Starts unary calls."""

    def __call__(
        self,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: Entries | None = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
    ) -> UnaryUnaryCall:
        """Start a call."""
        exchange = self._channel.begin(
            self._method, request, metadata, timeout, credentials or compression
        )
        return UnaryUnaryCall(exchange, self._deserialize)


class UnaryStreamMethod(_Method, grpc.aio.UnaryStreamMultiCallable[Any, Any]):
    """Starts calls with a response stream."""

    def __call__(
        self,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: Entries | None = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
    ) -> UnaryStreamCall:
        """Start a call."""
        exchange = self._channel.begin(
            self._method,
            request,
            metadata,
            timeout,
            credentials or compression,
            streams_responses=True,
        )
        return UnaryStreamCall(exchange, self._deserialize)


class StreamUnaryMethod(_Method, grpc.aio.StreamUnaryMultiCallable[Any, Any]):
    """Starts calls with a request stream."""

    def __call__(
        self,
        request_iterator: Requests | None = None,
        timeout: float | None = None,
        metadata: Entries | None = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
    ) -> StreamUnaryCall:
        """Start a call."""
        exchange = self._channel.begin(
            self._method,
            None,
            metadata,
            timeout,
            credentials or compression,
            streams_requests=True,
        )
        return StreamUnaryCall(exchange, self._deserialize, request_iterator)


class StreamStreamMethod(_Method, grpc.aio.StreamStreamMultiCallable[Any, Any]):
    """Starts calls with streams both ways."""

    def __call__(
        self,
        request_iterator: Requests | None = None,
        timeout: float | None = None,
        metadata: Entries | None = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
    ) -> StreamStreamCall:
        """Start a call."""
        exchange = self._channel.begin(
            self._method,
            None,
            metadata,
            timeout,
            credentials or compression,
            streams_requests=True,
            streams_responses=True,
        )
        return StreamStreamCall(exchange, self._deserialize, request_iterator)
