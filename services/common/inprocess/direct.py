"""Calls of methods with one request, served in the caller's task.

Most calls of a facade are of this kind. Only the calling task observes them, so they have no
deadline and no call object.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, NoReturn

import grpc

from services.common.inprocess.context import CallContext, Entry, Handler, OverError
from services.common.inprocess.exchange import Metadata
from services.common.inprocess.pipe import Receiver
from services.common.inprocess.server import NOT_SERVING, InProcessServer

_OK = grpc.StatusCode.OK

# Called with a request and its metadata; returns the response.
DirectMethod = Callable[[Any, Metadata], Awaitable[Any]]
# Called with a request, its metadata and a receiver of the responses.
DirectStreamMethod = Callable[[Any, Metadata, Receiver], Awaitable[None]]


class _Details:
    """The `grpc.HandlerCallDetails` of a direct call, for interceptors."""

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
        """Return False: the call is cancelled by cancelling its task."""
        return False

    def done(self) -> bool:
        """Return False: the call does not end before its servicer returns."""
        return False

    async def read(self) -> Any:
        """Return `grpc.aio.EOF`: the one request is an argument of the method."""
        return grpc.aio.EOF

    def check_status(self) -> None:
        """Raise the status that the servicer has set, unless it is OK.

        Raises:
            grpc.aio.AioRpcError: the status is not OK.
        """
        code = self._code
        if code is not None and code is not _OK:
            raise _error(code, self._text, self._trailing)


class _StreamContext(DirectContext):
    """The servicer's context of a direct call with a response stream.

    Attributes:
        failure: exception of the receiver, which ended the call.
    """

    failure: Exception | None = None

    def __init__(self, metadata: Metadata, receiver: Receiver) -> None:
        self._metadata = metadata
        self._receiver = receiver

    def send(self, message: Any) -> bool:
        """Send a response at once; return whether the servicer should wait (`drained`)."""
        if self.failure is None:
            try:
                return self._receiver.receive(message)
            except Exception as error:
                # The caller raises it; the servicer must not see it.
                self.failure = error
        self.raise_over()

    async def drained(self) -> None:
        """Wait until the servicer may send further responses."""
        try:
            await self._receiver.drain()
        except Exception as error:
            self.failure = error
            self.raise_over()

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Do nothing: a direct call has no way to read it."""


def direct_method(server: InProcessServer, method: str) -> DirectMethod:
    """Return a function that calls a unary method of a server in the current task.

    The servicer runs in the task's context and sets context variables there, so a task should serve
    one request only. Running calls must end before the server is stopped.

    The function raises `grpc.aio.AioRpcError` if the status of the call is not OK.
    """

    async def call(request: Any, metadata: Metadata) -> Any:
        handler = await _find(server, method, metadata)
        if handler is None:
            raise _error(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        context = DirectContext(metadata)
        if handler.unary_unary is None:  # an interceptor refuses the call
            response = await handler.stream_unary(context, context)
        else:
            response = await handler.unary_unary(request, context)
        context.check_status()
        return response

    return call


def direct_stream_method(server: InProcessServer, method: str) -> DirectStreamMethod:
    """Like `direct_method`, for a method with a response stream.

    The function passes each response to a receiver as it is sent, and raises exceptions of the
    receiver.
    """

    async def call(request: Any, metadata: Metadata, receiver: Receiver) -> None:
        handler = await _find(server, method, metadata)
        if handler is None:
            raise _error(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        context = _StreamContext(metadata, receiver)
        try:
            if handler.unary_stream is None:  # an interceptor refuses the call
                responses = handler.stream_stream(context, context)
            else:
                responses = handler.unary_stream(request, context)
            if isinstance(responses, AsyncGenerator):
                async with aclosing(responses):
                    await context.write_all(responses)
            else:
                await responses
        except OverError:
            if context.failure is None:
                raise
        if context.failure is not None:
            raise context.failure
        context.check_status()

    return call


def _find(server: InProcessServer, method: str, metadata: Metadata) -> Awaitable[Handler | None]:
    """Return the handler of a call through the interceptors, or None.

    Raises:
        grpc.aio.AioRpcError: UNAVAILABLE, when the server is not running.
    """
    if not server.is_serving:
        raise _error(grpc.StatusCode.UNAVAILABLE, NOT_SERVING)
    return server.find(_Details(method, metadata))


def _error(code: grpc.StatusCode, details: str, trailing: Metadata = ()) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(
        code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details, details
    )
