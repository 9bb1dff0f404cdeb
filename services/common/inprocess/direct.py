"""Calls of methods with one request and one response, served where they are made.

Most calls of a facade are these, and nobody but the task that makes them looks at them: they have
no deadline and need no call object.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import grpc

from services.common.inprocess.context import CallContext, Entry
from services.common.inprocess.exchange import Metadata
from services.common.inprocess.server import NOT_SERVING, InProcessServer

_OK = grpc.StatusCode.OK

# Takes a request and the metadata that goes with it; returns the response.
DirectMethod = Callable[[Any, Metadata], Awaitable[Any]]


class _Details:
    """What interceptors see of a call, as `grpc.HandlerCallDetails`."""

    __slots__ = ("invocation_metadata", "method")

    def __init__(self, method: str, metadata: Metadata) -> None:
        self.method = method
        self.invocation_metadata = metadata


class DirectContext(CallContext):
    """The servicer's context of a direct call."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()
    ) -> NoReturn:
        """End the call with a status other than OK; never returns."""
        raise _error(code, details, tuple(trailing_metadata))

    def invocation_metadata(self) -> Any:
        """Return the metadata of the call."""
        return tuple(Entry(key, value) for key, value in self._metadata)

    def time_remaining(self) -> Any:
        """Return None: there is no deadline."""
        return None

    def cancelled(self) -> bool:
        """Return False: to cancel the call is to cancel the task."""
        return False

    def done(self) -> bool:
        """Return False: the call has not ended while it is served."""
        return False

    async def read(self) -> Any:
        """Return `grpc.aio.EOF`: the one request is an argument of the method."""
        return grpc.aio.EOF


def direct_method(server: InProcessServer, method: str) -> DirectMethod:
    """Return a function that calls a unary method of a server in the current task.

    The servicer runs in the context of the task, and sets variables in it: the task is to serve
    one request. Whoever stops the server has to wait for its callers first.

    The function raises `grpc.aio.AioRpcError` where the call has another status than OK.
    """

    async def call(request: Any, metadata: Metadata) -> Any:
        if not server.is_serving:
            raise _error(grpc.StatusCode.UNAVAILABLE, NOT_SERVING)
        handler = await server.find(_Details(method, metadata))
        if handler is None:
            raise _error(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        context = DirectContext(metadata)
        if handler.unary_unary is None:  # of an interceptor that refuses the call
            response = await handler.stream_unary(context, context)
        else:
            response = await handler.unary_unary(request, context)
        code = context.code()
        if code is None or code is _OK:
            return response
        raise _error(code, context.details(), context.trailing_metadata())

    return call


def _error(code: grpc.StatusCode, details: str, trailing: Metadata = ()) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(
        code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details, details
    )
