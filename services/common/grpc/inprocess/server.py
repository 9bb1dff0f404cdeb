"""The server side: a replacement for `grpc.aio.Server`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import grpc

from services.common.grpc.inprocess.call import Call, not_serving

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
        self.calls: set[Call] = set()
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
