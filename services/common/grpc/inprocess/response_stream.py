"""Calls with a response stream, served in the task that reads the responses."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Protocol, Self

import grpc

from services.common.grpc.inprocess.call import InProcessCall, InProcessServer, pause
from services.common.grpc.inprocess.context import Metadata, Receiver, size_error


class ReadableCall(Protocol):
    """The part of a call with a response stream that a plain gRPC channel offers."""

    async def read(self) -> Any:
        """Return the next message, `grpc.aio.EOF` at the end."""

    def cancel(self) -> bool:
        """Cancel the call, unless it has ended."""


class ResponseStream:
    """The responses of a call, like a `grpc.aio.UnaryStreamCall`.

    The call begins with the first `read`. Between two reads the servicer pauses, so that a slow
    reader holds it. A stream that is abandoned is cancelled.
    """

    def __init__(
        self,
        server: InProcessServer,
        method: str,
        request: Any,
        *,
        metadata: Metadata = (),
        timeout: float | None = None,
    ) -> None:
        """Create the stream of a call that has not begun."""
        self._call = InProcessCall(server, method, metadata)
        self._request = request
        self._timeout = timeout
        self._has_begun = False
        self._limit = server.max_message_bytes
        self._sent: _Sent | None = None  # what `read` returns
        self._reading: _Reading | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self.read()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        return message

    async def read(self) -> Any:
        """Return the next message, `grpc.aio.EOF` at the end.

        Raises:
            grpc.aio.AioRpcError: the call failed.
            asyncio.CancelledError: the call was cancelled by this side.
        """
        call = self._call
        if self._sent is None:
            self._sent = _Sent(self._limit)
            self._reading = _Reading(call)
            self.begin(self._sent)
        messages = self._sent.messages
        while not messages:
            if call.failure is not None:
                raise call.failure()
            if not call.is_running:
                return grpc.aio.EOF
            try:
                await call.advance()
            except grpc.aio.AioRpcError:
                if not messages:
                    raise
        return messages.popleft()

    def cancel(self) -> bool:
        """Cancel the call; return False if it has already ended."""
        call = self._call
        if call.failure is not None or (self._has_begun and not call.is_running):
            return False
        call.interrupt(asyncio.CancelledError)
        return True

    def begin(self, receiver: Receiver) -> InProcessCall:
        """Begin the call, which passes its messages to a receiver as they are sent; return it."""
        call = self._call
        if call.failure is not None:
            raise call.failure()
        self._has_begun = True
        call.receiver = receiver
        request, self._request = self._request, None  # it may be large
        call.begin(request, self._timeout)
        return call


class _Reading:
    """Cancels a call once its stream is abandoned, to which alone it belongs."""

    def __init__(self, call: InProcessCall) -> None:
        self._call = call

    def __del__(self) -> None:
        if self._call.is_running:
            with suppress(RuntimeError):  # the event loop has ended
                self._call.interrupt(asyncio.CancelledError)


class _Sent:
    """Receives messages, and lets their servicer pause after each.

    Attributes:
        messages: the messages that have not been read.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.messages: deque[Any] = deque()

    def receive(self, message: Any) -> bool:
        if message.ByteSize() > self._limit:
            raise size_error(message, self._limit)
        self.messages.append(message)
        return True

    async def drain(self) -> None:
        await pause()


def deliver(call: ReadableCall, receiver: Receiver) -> Awaitable[None]:
    """Pass every message of a call to a receiver until the call ends; to be awaited.

    An in-process call passes each message on as the servicer sends it, in the call's context. That
    saves an event loop iteration per message. Such messages are not held, and have no maximum size.

    Raises:
        grpc.aio.AioRpcError: the call failed.
        asyncio.CancelledError: the task was cancelled, or the call by this side.
        Exception: raised by the receiver.
    """
    if isinstance(call, ResponseStream):
        return call.begin(receiver).finish()
    return _read_all(call, receiver)


async def _read_all(call: ReadableCall, receiver: Receiver) -> None:
    try:
        while (message := await call.read()) is not grpc.aio.EOF:
            if receiver.receive(message):
                await receiver.drain()
    finally:
        call.cancel()
