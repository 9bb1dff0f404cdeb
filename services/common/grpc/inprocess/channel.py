"""Both ends of the calls within a process: replacements for `grpc.aio.Server` and `.Channel`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import grpc

from services.common.grpc.inprocess.call import InProcessCall, not_serving
from services.common.grpc.inprocess.queued_call import QueuedCall
from services.common.grpc.inprocess.response_stream import ResponseStream
from services.common.grpc.inprocess.status import Metadata

# A `grpc.RpcMethodHandler`; its attributes are missing in the published types.
Handler = Any
# Returns the handler of a call through the interceptors, or None.
Find = Callable[[Any], Awaitable[Handler | None]]


class InProcessServer:
    """Serves the calls of `InProcessChannel`s.

    Handlers are coroutines and asynchronous generators; others are not supported.

    Attributes:
        max_message_bytes: maximum size of a message in bytes, in both directions.
        is_serving: whether it accepts calls.
        find: returns the handler of a call through the interceptors, or None.
        calls: the running calls.
    """

    def __init__(
        self, interceptors: Sequence[grpc.aio.ServerInterceptor], *, max_message_bytes: int
    ) -> None:
        """Create a server that accepts no calls yet.

        Args:
            interceptors: interceptors of every call, outermost first.
            max_message_bytes: maximum size of a message in bytes, in both directions.
        """
        self.max_message_bytes = max_message_bytes
        self._methods: dict[str, Handler] = {}
        self._generic: list[grpc.GenericRpcHandler] = []
        self.is_serving = False
        self.calls: set[InProcessCall] = set()
        find: Any = self._find
        for interceptor in reversed(interceptors):
            find = partial(interceptor.intercept_service, find)
        self.find: Find = find

    def add_generic_rpc_handlers(
        self, generic_rpc_handlers: Sequence[grpc.GenericRpcHandler]
    ) -> None:
        """Register handlers."""
        self._generic += generic_rpc_handlers

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: Mapping[str, Handler]
    ) -> None:
        """Register the methods of a service."""
        for name, handler in method_handlers.items():
            self._methods[f"/{service_name}/{name}"] = handler

    def start(self) -> None:
        """Start accepting calls."""
        self.is_serving = True

    async def stop(self, grace_s: float | None) -> None:
        """Reject new calls, and cancel those still running after `grace_s` seconds."""
        self.is_serving = False
        running = list(self.calls)
        if not running:
            return
        ends = [call.ended() for call in running]
        if grace_s:
            await asyncio.wait(ends, timeout=grace_s)
        for call in running:
            call.interrupt(not_serving)
        await asyncio.wait(ends)

    async def _find(self, details: Any) -> Handler | None:
        return self._methods.get(details.method) or self._find_generic(details)

    def _find_generic(self, details: Any) -> Handler | None:
        for generic in self._generic:
            handler = generic.service(details)
            if handler is not None:
                return handler
        return None


class InProcessChannel(grpc.aio.Channel):
    """A `grpc.aio.Channel` to a server in this process, without its calls' `credentials`.

    A call with one response is a coroutine, which begins when it is awaited, and is cancelled with
    its task.
    """

    def __init__(self, server: InProcessServer) -> None:
        """Create a channel to a server, which may start later."""
        self._server = server

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.close()

    def unary_unary(self, method: str, *_: Any, **__: Any) -> Any:
        """Return a coroutine function that calls a method with one request and one response."""
        server = self._server

        async def run(
            request: Any, *, metadata: Metadata = (), timeout: float | None = None
        ) -> Any:
            call = InProcessCall(server, method, metadata)
            call.begin(request, timeout)
            await call.advance()
            return call.response

        return run

    def unary_stream(self, method: str, *_: Any, **__: Any) -> Any:
        """Return a function that calls a method with one request and a response stream."""
        server = self._server

        def start(
            request: Any, *, metadata: Metadata = (), timeout: float | None = None
        ) -> ResponseStream:
            call = InProcessCall(server, method, metadata)
            return ResponseStream(call, request, timeout, server.max_message_bytes)

        return start

    def stream_unary(self, method: str, *_: Any, **__: Any) -> Any:
        """Return a function that calls a method with a request stream."""
        server = self._server

        def start(*, metadata: Metadata = (), timeout: float | None = None) -> QueuedCall:
            call = InProcessCall(server, method, metadata)
            return QueuedCall(call, timeout, server.max_message_bytes)

        return start

    def stream_stream(self, method: str, *_: Any, **__: Any) -> Any:
        """Return a function that calls a method with a request stream and a response stream."""
        return self.stream_unary(method)

    async def close(self, grace: float | None = None) -> None:
        """Do nothing: the server ends its calls when it stops."""

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Return READY: there is no connection."""
        return grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the channel has another state."""
        if last_observed_state is grpc.ChannelConnectivity.READY:
            await asyncio.get_running_loop().create_future()

    async def channel_ready(self) -> None:
        """Return at once."""
