"""The server's side of links: what `grpc.aio.Server` is for plain calls."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import grpc

from gateway.link.v1 import link_pb2_grpc
from services.common.link.context import CallDetails, Handler
from services.common.link.frames import FrameError
from services.common.link.session import Session

log = logging.getLogger(__name__)

MAX_LINKS = 1_000


class LinkServer(link_pb2_grpc.LinkServicer):
    """Serves calls that come over links, with handlers like those of a plain server.

    It is itself the servicer of a plain server, which carries the links. Handlers are
    coroutines and asynchronous generators; others are not supported.
    """

    def __init__(
        self, interceptors: Sequence[grpc.aio.ServerInterceptor], *, max_message: int
    ) -> None:
        """Make a server.

        Args:
            interceptors: what happens around every call, from the outside inwards.
            max_message: bytes of a message, either way.
        """
        self._interceptors = tuple(interceptors)
        self._max_message = max_message
        self._methods: dict[str, Handler] = {}
        self._generic: list[grpc.GenericRpcHandler] = []
        self._sessions: set[Session] = set()

    def add_generic_rpc_handlers(
        self, generic_rpc_handlers: Sequence[grpc.GenericRpcHandler]
    ) -> None:
        """Serve the methods that these handlers know."""
        self._generic += generic_rpc_handlers

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: Mapping[str, Handler]
    ) -> None:
        """Serve the methods of a service."""
        for name, handler in method_handlers.items():
            self._methods[f"/{service_name}/{name}"] = handler

    def go_away(self) -> None:
        """Take no more calls; links end with their last one."""
        for session in self._sessions:
            session.go_away()

    async def Open(  # type: ignore[override]  # gRPC takes one that reads and writes, too
        self, request_iterator: Any, context: Any
    ) -> None:
        """Serve a link."""
        if len(self._sessions) >= MAX_LINKS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many links")
        session = Session(context, partial(self._intercept, 0), self._max_message)
        self._sessions.add(session)
        try:
            await context.send_initial_metadata(())
            await session.run()
        except FrameError as error:
            log.error("a link is closed: its caller sent what makes no sense: %s", str(error))
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        finally:
            self._sessions.discard(session)

    async def _intercept(self, index: int, details: CallDetails) -> Handler | None:
        if index < len(self._interceptors):
            continuation = partial(self._intercept, index + 1)
            interceptor: Any = self._interceptors[index]
            return await interceptor.intercept_service(continuation, details)
        return self._find(details)

    def _find(self, details: CallDetails) -> Handler | None:
        handler = self._methods.get(details.method)
        if handler is not None:
            return handler
        for generic in self._generic:
            handler = generic.service(details)
            if handler is not None:
                return handler
        return None
