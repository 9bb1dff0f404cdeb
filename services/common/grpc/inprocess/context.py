"""The servicer's context of an in-process call, its queues of messages, and its errors."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol, Self

import grpc

Metadata = Sequence[tuple[str, str | bytes]]

PEER = "inprocess"
# High-water mark in bytes, and the constant cost of a message, so that empty messages count.
WINDOW = 256 << 10
MESSAGE_COST = 64


class Receiver(Protocol):
    """Receives messages as they are sent."""

    def receive(self, message: Any) -> bool:
        """Receive a message; return whether the sender should wait (`drain`)."""
        ...

    async def drain(self) -> None:
        """Wait until the sender may continue."""


class OverError(grpc.aio.UsageError):
    """Error raised in a servicer that continues after its call has ended."""


class MetadataEntry(NamedTuple):
    """One entry of metadata."""

    key: str
    value: str | bytes


class MessageQueue:
    """A bounded stream of messages.

    Args:
        max_message_bytes: maximum size of a message.

    Attributes:
        is_closed: whether no further messages are accepted.
    """

    def __init__(self, max_message_bytes: int) -> None:
        self._max_message_bytes = max_message_bytes
        self._messages: deque[tuple[Any, int]] = deque()
        self._held = 0
        self._waiting: list[asyncio.Future[None]] = []
        self.is_closed = False

    def receive(self, message: Any) -> bool:
        """Add a message, unless the queue is closed; return whether the writer should wait.

        Raises:
            grpc.aio.AioRpcError: the message is too large.
        """
        if self.is_closed:
            return False
        size = message.ByteSize()
        if size > self._max_message_bytes:
            raise size_error(message, self._max_message_bytes)
        size += MESSAGE_COST
        self._messages.append((message, size))
        self._held += size
        self._notify()
        return self._held > WINDOW

    async def drain(self) -> None:
        """Wait until the writer may continue."""
        while self._held > WINDOW and not self.is_closed:
            await self._change()

    async def take(self) -> Any:
        """Remove and return the first message; `grpc.aio.EOF` at the end."""
        while not self._messages:
            if self.is_closed:
                return grpc.aio.EOF
            await self._change()
        message, size = self._messages.popleft()
        self._held -= size
        self._notify()
        return message

    def close(self) -> None:
        """Accept no further messages; those in the queue remain."""
        self.is_closed = True
        self._notify()

    def drop(self) -> None:
        """Close the queue and discard its messages."""
        self._messages.clear()
        self._held = 0
        self.close()

    async def closed(self) -> None:
        """Wait until the queue is closed."""
        while not self.is_closed:
            await self._change()

    def _change(self) -> asyncio.Future[None]:
        """Return a future that completes with the next change."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def _notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)


class CallContext(grpc.aio.ServicerContext[Any, Any]):
    """The context of a call, and the iterator of its request stream.

    Attributes:
        receiver: receives the responses of a response stream.
        requests: the request stream; None if the call has one request.
        failure: makes the exception that the caller gets; None unless the call has failed. Once it
            is set, the call is over for the servicer.
        deadline: time at which the call expires, on the loop's clock, or None.
    """

    receiver: Receiver
    requests: MessageQueue | None = None
    failure: Callable[[], BaseException] | None = None
    deadline: float | None = None
    _aborted: grpc.aio.AbortError | None = None
    _code: grpc.StatusCode | None = None
    _text = ""
    _trailing: Metadata = ()
    _callbacks: Sequence[Callable[[Any], object]] = ()

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self.read()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        return message

    async def read(self) -> Any:
        """Return the next message of a request stream, `grpc.aio.EOF` at the end."""
        if self.requests is None:
            return grpc.aio.EOF
        message = await self.requests.take()
        if self.failure is not None:
            self._raise_over()
        return message

    async def write(self, message: Any) -> None:
        """Send a response; wait while the caller is slow."""
        if self.send(message):
            await self.drained()

    def send(self, message: Any) -> bool:
        """Send a response at once; return whether the servicer should wait (`drained`)."""
        if self.failure is None:
            try:
                return self.receiver.receive(message)
            except Exception as error:
                self._fail_with(error)
        self._raise_over()

    async def write_all(self, responses: AsyncGenerator[Any, Callable[[Any], bool]]) -> None:
        """Send the responses that a servicer yields.

        Each `yield` of the generator returns `send`. The generator may call `send` with further
        responses, and yields None to wait while the caller is slow.
        """
        try:
            response = await anext(responses)
            while True:
                if response is None or self.send(response):
                    await self.drained()
                response = await responses.asend(self.send)
        except StopAsyncIteration:
            return

    async def drained(self) -> None:
        """Wait until the servicer may send further responses."""
        try:
            await self.receiver.drain()
        except Exception as error:
            self._fail_with(error)
        if self.failure is not None:
            self._raise_over()

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()
    ) -> NoReturn:
        """End the call with a status other than OK; never returns."""
        if self._aborted is not None:
            raise grpc.aio.UsageError("Abort already called!")
        self._aborted = grpc.aio.AbortError("Locally aborted.")
        if self.failure is None:
            self.fail(code, details or self._text, tuple(trailing_metadata) or self._trailing)
        raise self._aborted

    async def abort_with_status(self, status: Any) -> NoReturn:
        """End the call with a status other than OK; never returns."""
        await self.abort(status.code, status.details, status.trailing_metadata)

    def fail(self, code: grpc.StatusCode, text: str, trailing: Metadata = ()) -> None:
        """Set the status that the caller gets."""
        self.failure = partial(status_error, code, text, trailing)

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """Set the trailing metadata, which the caller gets with a status other than OK."""
        self._trailing = tuple(trailing_metadata)

    def trailing_metadata(self) -> Any:
        """Return the trailing metadata."""
        return self._trailing

    def invocation_metadata(self) -> Any:
        """Return the metadata of the call."""
        return tuple(MetadataEntry(key, value) for key, value in self._metadata)

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Do nothing: callers within the process have no use for it."""

    def set_code(self, code: grpc.StatusCode) -> None:
        """Set the status code."""
        self._code = code

    def code(self) -> Any:
        """Return the status code that was set."""
        return self._code

    def set_details(self, details: str) -> None:
        """Set the status text."""
        self._text = details

    def details(self) -> str:
        """Return the status text that was set."""
        return self._text

    def set_compression(self, compression: grpc.Compression) -> None:
        """Do nothing: nothing is serialized."""

    def disable_next_message_compression(self) -> None:
        """Do nothing: nothing is serialized."""

    def peer(self) -> str:
        """Return a constant: the caller is in this process."""
        return PEER

    def peer_identities(self) -> Any:
        """Return None: the transport authenticates nobody."""
        return None

    def peer_identity_key(self) -> Any:
        """Return None: the transport authenticates nobody."""
        return None

    def auth_context(self) -> Any:
        """Return an empty mapping: the transport authenticates nobody."""
        return {}

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Register a callback that is called with the context when the servicer has finished."""
        self._callbacks = (*self._callbacks, callback)

    def cancelled(self) -> bool:
        """Return whether the call has ended before its servicer."""
        return self.done() and self._aborted is None

    def done(self) -> bool:
        """Return whether the call has ended."""
        return self.failure is not None

    def _fail_with(self, error: Exception) -> None:
        """End the call with an exception of the receiver; the servicer must not see it."""
        self.failure = lambda: error

    def _raise_over(self) -> NoReturn:
        """Raise an error in a servicer that continues after the call has ended."""
        if self._aborted is not None:
            raise self._aborted
        raise OverError("RPC already finished.")


def status_error(code: grpc.StatusCode, text: str, trailing: Metadata = ()) -> grpc.aio.AioRpcError:
    """Return the error that a caller gets for a status."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), text, text)


def size_error(message: Any, limit: int) -> grpc.aio.AioRpcError:
    """Return the error of a message that has more bytes than the limit."""
    text = f"Sent message larger than max ({message.ByteSize()} vs. {limit})"
    return status_error(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
