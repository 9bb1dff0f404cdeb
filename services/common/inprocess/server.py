"""The server side: a replacement for `grpc.aio.Server`."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import grpc

from services.common.inprocess.context import Handler
from services.common.inprocess.exchange import Exchange
from services.common.inprocess.served import CallDetails, Find, ServedCall

_NOT_SERVING = "the server is not running"


class InProcessServer:
    """Serves the calls of `InProcessChannel`s.

    Handlers are coroutines and asynchronous generators; others are not supported.

    Attributes:
        max_message: bytes of a message, either way.
    """

    def __init__(
        self, interceptors: Sequence[grpc.aio.ServerInterceptor], *, max_message: int
    ) -> None:
        """Create a server that accepts no calls yet.

        Args:
            interceptors: interceptors of every call, outermost first.
            max_message: bytes of a message, either way.
        """
        self.max_message = max_message
        self._methods: dict[str, Handler] = {}
        self._generic: list[grpc.GenericRpcHandler] = []
        self._calls: set[ServedCall] = set()
        self._is_serving = False
        find: Any = self._find
        for interceptor in reversed(interceptors):
            find = partial(interceptor.intercept_service, find)
        self._ask: Find = find

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
        self._is_serving = True

    def begin(self, exchange: Exchange) -> None:
        """Serve a call in its own task."""
        if not self._is_serving:
            exchange.leave(grpc.StatusCode.UNAVAILABLE, _NOT_SERVING)
        elif exchange.code is None:
            ServedCall(exchange, self._ask, self._calls)

    async def stop(self, grace_s: float | None) -> None:
        """Reject new calls, and cancel those still running after `grace_s` seconds."""
        self._is_serving = False
        if grace_s and self._calls:
            await asyncio.wait([call.task for call in self._calls], timeout=grace_s)
        left = list(self._calls)
        for call in left:
            call.end(grpc.StatusCode.UNAVAILABLE, _NOT_SERVING)
        if left:
            await asyncio.wait([call.task for call in left])

    async def _find(self, details: CallDetails) -> Handler | None:
        handler = self._methods.get(details.method)
        if handler is not None:
            return handler
        for generic in self._generic:
            handler = generic.service(details)
            if handler is not None:
                return handler
        return None
