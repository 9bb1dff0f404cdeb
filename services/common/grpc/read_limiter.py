"""Limits on the memory for request messages of gRPC calls over TCP.

gRPC receives a whole message before a handler sees any of it. Until a handler reads a message, gRPC
buffers at most the stream's flow control window. The limits are therefore on the number of
concurrent reads: per user, and of all callers without a key.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf.message import DecodeError

from gateway.errors.v1 import errors_pb2
from services.common import errors
from services.common.errors import GatewayError
from services.common.grpc.authentication import caller
from services.common.grpc.interceptors import SIGN_IN_METHODS, UNAUTHENTICATED_METHODS
from services.common.settings import Grpc

if TYPE_CHECKING:
    Handler = grpc.RpcMethodHandler[Any, Any]
    Context = grpc.aio.ServicerContext[Any, Any]

# The message of a health check or reflection call is a name, which arrives in one packet with the
# call. It may take `_ARRIVAL_S` to arrive in the stream's window, after which reading it is
# immediate. Of a message that is still incomplete then, little has been received.
_REFLECTION = "/grpc.reflection."
_MAX_UNAUTHENTICATED_BYTES = 64 << 10
_ARRIVAL_S = 0.02
_READ_S = 0.02
# Further messages of a stream are sent after a response.
_NEXT_READ_S = 5.0
_MAX_WAITING = 100


class RequestReadLimiter(grpc.aio.ServerInterceptor):
    """Interceptor that limits the reading of request messages.

    It runs after the interceptor that authenticates callers. Calls of users with request streams
    are not limited: their servicers read one message at a time.
    """

    def __init__(self, bounds: Grpc) -> None:
        self._users = _UserReadLimiter(bounds)
        self._health = _UnauthenticatedReadLimiter()
        self._reflection = _UnauthenticatedReadLimiter()
        self._sign_in = _UnauthenticatedReadLimiter()
        # By method: its handler, and the wrapped handler.
        self._wrapped: dict[str, tuple[Handler, Handler]] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the handler of a call, wrapped to limit reading."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        is_unauthenticated = method.startswith(UNAUTHENTICATED_METHODS)
        if handler is None or (handler.request_streaming and not is_unauthenticated):
            return handler
        cached = self._wrapped.get(method)
        if cached is None or cached[0] is not handler:
            if not is_unauthenticated:
                wrapped = self._users.wrap(handler)
            elif method.startswith(_REFLECTION):
                wrapped = self._reflection.wrap_stream(handler)
            elif method in SIGN_IN_METHODS:
                wrapped = self._sign_in.wrap(handler)
            else:
                wrapped = self._health.wrap(handler)
            cached = self._wrapped[method] = handler, wrapped
        return cached[1]

    def stop(self) -> None:
        """End the streams of callers without a key, which may otherwise wait for ever."""
        self._health.stop()
        self._reflection.stop()


class _UserReadLimiter:
    """Reads the requests of authenticated callers, a few per user at a time."""

    def __init__(self, bounds: Grpc) -> None:
        self._bounds = bounds
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._calls: Counter[str] = Counter()
        self._held: Counter[str] = Counter()

    def wrap(self, handler: Handler) -> Handler:
        deserialize = handler.request_deserializer
        behavior: Any = handler.unary_stream or handler.unary_unary

        async def single(_: Any, context: Context) -> Any:
            async with self._request(deserialize, context) as request:
                return await behavior(request, context)

        async def streaming(_: Any, context: Context) -> AsyncIterator[Any]:
            async with (
                self._request(deserialize, context) as request,
                aclosing(behavior(request, context)) as responses,
            ):
                async for response in responses:
                    yield response

        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                streaming, None, handler.response_serializer
            )
        return grpc.stream_unary_rpc_method_handler(single, None, handler.response_serializer)

    @asynccontextmanager
    async def _request(
        self, deserialize: Callable[[bytes], Any] | None, context: Context
    ) -> AsyncIterator[Any]:
        """Read the request of a call; its size counts as held until the call ends."""
        user = caller.get().user_id
        self._calls[user] += 1
        charged_bytes = 0
        try:
            async with self._turns.setdefault(
                user, asyncio.Semaphore(self._bounds.max_reads_per_user)
            ):
                message = await self._read(context)
                size = len(message)
                if self._held[user] + size > self._bounds.max_held_bytes_per_user:
                    del message  # not kept alive by the error's traceback
                    raise GatewayError(
                        errors_pb2.REASON_RATE_LIMITED,
                        "the running calls of one user can have at most "
                        f"{self._bounds.max_held_bytes_per_user:,} bytes of requests; try again "
                        "when some have ended",
                        limit="grpc.max_held_bytes_per_user",
                    )
                charged_bytes = size
                self._held[user] += charged_bytes
                try:
                    request = _decode(deserialize, message)
                finally:
                    del message
            yield request
        finally:
            self._held[user] -= charged_bytes
            self._calls[user] -= 1
            if not self._calls[user]:
                del self._calls[user], self._held[user], self._turns[user]

    async def _read(self, context: Context) -> Any:
        try:
            async with asyncio.timeout(self._bounds.read_timeout_s):
                message: Any = await context.read()
        except TimeoutError:
            raise GatewayError(
                errors_pb2.REASON_TIMEOUT,
                f"the request was not received within {self._bounds.read_timeout_s:g} s",
                limit="grpc.read_timeout_s",
            ) from None
        if message is grpc.aio.EOF:
            raise errors.invalid("", "the call has no request message")
        return message


class _UnauthenticatedReadLimiter:
    """Reads messages of callers without a key to one service, one at a time.

    gRPC has no message size limit per method: a large message would be received whole before it
    could be rejected. Therefore a call whose message cannot be read at once is ended, and the
    received part of the message is freed before the next call is read. A caller that sends nothing
    delays the others only briefly.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._is_stopping = False
        self._streams: set[asyncio.Task[Any]] = set()

    def wrap(self, handler: Handler) -> Handler:
        """Return a handler that reads the one request of a call."""
        deserialize = handler.request_deserializer
        behavior: Any = handler.unary_unary or handler.unary_stream

        async def call(_: Any, context: Context) -> Any:
            async with self._turn(context):
                message = await self._read(context)
                if message is grpc.aio.EOF:
                    raise errors.invalid("", "the call has no request message")
                try:
                    request = _decode(deserialize, message)
                finally:
                    del message
            return await behavior(request, context)

        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._kept(call), None, handler.response_serializer
            )
        return grpc.stream_unary_rpc_method_handler(call, None, handler.response_serializer)

    def wrap_stream(self, handler: Handler) -> Handler:
        """Return a handler that serves one stream at a time, and ends a silent one."""
        deserialize = handler.request_deserializer
        behavior: Any = handler.stream_stream

        async def call(_: Any, context: Context) -> None:
            async def requests() -> AsyncIterator[Any]:
                within_s = _READ_S
                while (message := await self._read(context, within_s)) is not grpc.aio.EOF:
                    yield _decode(deserialize, message)
                    within_s = _NEXT_READ_S

            async with self._turn(context):
                async for response in behavior(requests(), context):
                    await context.write(response)

        return grpc.stream_stream_rpc_method_handler(
            self._kept(call), None, handler.response_serializer
        )

    def stop(self) -> None:
        """End the streams."""
        self._is_stopping = True
        for task in self._streams:
            task.cancel()

    def _kept(self, call: Callable[[Any, Context], Awaitable[None]]) -> Any:
        async def stream(requests: Any, context: Context) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._streams.add(task)
            try:
                await call(requests, context)
            except asyncio.CancelledError:
                if not self._is_stopping:
                    raise
                # Without this, gRPC leaves the call open.
                task.uncancel()
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")
            finally:
                self._streams.discard(task)

        return stream

    @asynccontextmanager
    async def _turn(self, context: Context) -> AsyncIterator[None]:
        """Wait for the call's turn; a `GatewayError` in the block becomes the call's status."""
        if self._waiting >= _MAX_WAITING:
            await _refuse(
                context, errors.unavailable("too many callers without an API key; try again")
            )
        self._waiting += 1
        try:
            await asyncio.sleep(_ARRIVAL_S)
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        except GatewayError as error:
            await _refuse(context, error)
        finally:
            self._lock.release()

    async def _read(self, context: Context, within_s: float = _READ_S) -> Any:
        """Read one message, or EOF.

        Raises:
            GatewayError: the message is too large, or has not arrived in time.
        """
        reading = asyncio.ensure_future(context.read())
        # In two steps: after a stall of the loop the first timeout expires before sockets are read.
        for _ in range(2):
            if not reading.done():
                await asyncio.wait([reading], timeout=within_s / 2)
        if not reading.done():
            # The read ends with its call. Cancelling it would leak the message that it receives.
            reading.add_done_callback(_forget)
            raise GatewayError(
                errors_pb2.REASON_TIMEOUT, "a call without an API key must send its message at once"
            )
        message: Any = reading.result()
        if message is not grpc.aio.EOF and len(message) > _MAX_UNAUTHENTICATED_BYTES:
            del message, reading  # not kept alive by the error's traceback
            raise GatewayError(
                errors_pb2.REASON_TOO_LARGE,
                "the message of a call without an API key must have at most "
                f"{_MAX_UNAUTHENTICATED_BYTES:,} bytes",
            )
        return message


async def _refuse(context: Context, error: GatewayError) -> None:
    """End a call with the status of `error`; never returns."""
    await context.abort(error.grpc_status, error.message)


def _forget(reading: asyncio.Future[Any]) -> None:
    """Retrieve the exception of an abandoned read, so that it is not logged."""
    if not reading.cancelled():
        reading.exception()


def _decode(deserialize: Callable[[bytes], Any] | None, message: bytes) -> Any:
    """Parse a serialized request.

    Raises:
        GatewayError: the message is not valid.
    """
    try:
        return deserialize(message) if deserialize else message
    except DecodeError:
        del message  # not kept alive by the error's traceback
    raise errors.invalid("", "the request message is not of the method's request type")
