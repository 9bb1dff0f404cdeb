"""One call: what its caller and its servicer share, from the request to the status."""

import asyncio
import logging
from collections.abc import Callable, Generator
from typing import Any

import grpc

from services.common.inprocess.pipe import Changing, Pipe

log = logging.getLogger(__name__)

Metadata = tuple[tuple[str, str | bytes], ...]

_OK = grpc.StatusCode.OK


class Exchange(Changing):
    """A call on its way.

    It ends with a status: the servicer's, once the caller has taken the messages before it,
    or one of the caller's side, when it is cancelled or out of time. To interceptors it is the
    `grpc.HandlerCallDetails`, with `method` and `invocation_metadata`.

    Attributes:
        method: `/package.Service/Method`.
        invocation_metadata: what came with the call.
        max_message_bytes: bytes of a message, either way.
        deadline: when it ends at the latest, by the loop's clock, or None.
        request: the one request of a call that has one, until it is read.
        requests: what the caller sends, where that is a stream.
        response: the one response of a call that has one, once it is there.
        responses: what the servicer sends, where that is a stream.
        initial: the initial metadata, or None while it may still come.
        status: what the servicer ended a stream with of which messages are left.
        code: how the call ended, or None while it has not.
        details: the text of the status.
        trailing: the metadata of the status.
        is_cancelled_here: whether its caller cancelled it.
        is_answered: whether the servicer has ended it.
        is_over: whether the servicer has ended it, or the caller has left.
        on_leave: called when it ends by its caller's side.
        serve_here: serves it in the task that awaits it, until it is being served.
    """

    deadline: float | None = None
    response: Any = None
    initial: Metadata | None = None
    status: tuple[grpc.StatusCode, str, Metadata] | None = None
    code: grpc.StatusCode | None = None
    details = ""
    trailing: Metadata = ()
    is_cancelled_here = is_answered = is_over = False
    on_leave: Callable[[], object] | None = None
    serve_here: Callable[[], Generator[Any, None, None]] | None = None
    _callbacks: list[Callable[[], object]] | None = None
    _timer: asyncio.TimerHandle | None = None
    _timeout = 0.0

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        method: str,
        metadata: Metadata,
        request: Any,
        registry: "set[Exchange]",
        max_message_bytes: int,
        timeout: float | None,
        streams_requests: bool,
        streams_responses: bool,
    ) -> None:
        """Make a call; arguments go by position, which is faster.

        Args:
            loop: the running event loop; to ask for it takes a system call in CPython 3.11.
            method: `/package.Service/Method`.
            metadata: what goes with it.
            request: what the caller sends, unless it `streams_requests`.
            registry: holds the call until it has ended.
            max_message_bytes: bytes of a message, either way.
            timeout: seconds it may take from now, or None.
            streams_requests: whether the caller sends any number of messages.
            streams_responses: whether any number of messages may come.
        """
        self.loop = loop
        self._registry = registry
        registry.add(self)
        self.method = method
        self.invocation_metadata = metadata
        self.max_message_bytes = max_message_bytes
        self.request = request
        self.requests = Pipe(loop) if streams_requests else None
        self.responses = Pipe(loop) if streams_responses else None
        if timeout is not None:
            self._limit(timeout)

    def _limit(self, timeout: float) -> None:
        self._timeout = timeout
        self.deadline = self.loop.time() + timeout
        if timeout > 0:
            self._timer = self.loop.call_at(self.deadline, self._expire)
        else:
            self._expire()

    # Used by both sides.

    def time_remaining(self) -> float | None:
        """Return the seconds until the deadline, or None."""
        if self.deadline is None:
            return None
        # A sum and a difference of times may be a rounding more than the timeout.
        return max(min(self.deadline - self.loop.time(), self._timeout), 0.0)

    # The caller's side.

    def send_request(self, message: Any) -> bool:
        """Send a message of a stream; a message that is too large ends the call.

        Return whether the sender should wait until the servicer has read some.
        """
        requests = self.requests
        assert requests is not None, "it has one request"
        size = len(message) if isinstance(message, bytes) else message.ByteSize()
        if size > self.max_message_bytes:
            self.refuse(size)
            return False
        return requests.put(message, size)

    def refuse(self, size: int) -> None:
        """End the call, as a request has `size` bytes."""
        self.leave(grpc.StatusCode.RESOURCE_EXHAUSTED, self._too_large(size))

    def conclude(self) -> None:
        """End the call with the servicer's status, after its last message was read."""
        assert self.status is not None, "the servicer has not ended it"
        self._finish(*self.status)

    def cancel(self, details: str) -> bool:
        """Cancel the call; return False if it has already ended."""
        if self.code is not None:
            return False
        self.is_cancelled_here = True
        self.leave(grpc.StatusCode.CANCELLED, details)
        return True

    def leave(self, code: grpc.StatusCode, details: str) -> None:
        """End the call from the caller's side, unless it has ended."""
        if self.code is None:
            self.is_over = True
            self.request = self.response = None
            for pipe in (self.requests, self.responses):
                if pipe is not None:
                    pipe.drop()
            self._finish(code, details, ())
            if self.on_leave is not None:
                self.on_leave()

    def on_end(self, callback: Callable[[], object]) -> None:
        """Register a callback for the end of the call; call it at once if it has ended."""
        if self.code is not None:
            callback()
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    async def begun(self) -> None:
        """Wait for the initial metadata."""
        while self.initial is None:
            await self.changed()

    async def over(self) -> None:
        """Wait until the call has ended."""
        while self.code is None:
            await self.changed()

    # The servicer's side.

    def begin(self, initial: Metadata) -> None:
        """Send initial metadata."""
        self.initial = initial
        self.wake()

    def send_response(self, message: Any) -> bool:
        """Send a message; a message that is too large to be held ends the call.

        If the call has one response, the first one counts. Return whether the servicer should wait
        until the caller has read some.
        """
        responses = self.responses
        if responses is not None and responses.receiver is not None:
            size = 0  # nothing is held of what is taken at once
        else:
            size = len(message) if isinstance(message, bytes) else message.ByteSize()
        if size > self.max_message_bytes:
            self.answer(grpc.StatusCode.RESOURCE_EXHAUSTED, self._too_large(size), ())
            return False
        if responses is None:
            if self.response is None:
                self.response = message
            return False
        if self.initial is None:
            self.begin(())
        return responses.put(message, size)

    def answer(self, code: grpc.StatusCode, details: str, trailing: Metadata) -> None:
        """End the call with a status; unread responses are delivered first."""
        self.is_answered = self.is_over = True
        self.request = None
        if self.requests is not None:
            self.requests.drop()
        if self.code is not None:
            return
        responses = self.responses
        if responses is None:
            if code is _OK and self.response is None:
                code, details = grpc.StatusCode.INTERNAL, "the servicer sent no response"
        elif responses.messages:
            self.status = code, details, trailing
            responses.end()
            return
        self._finish(code, details, trailing)

    def _finish(self, code: grpc.StatusCode, details: str, trailing: Metadata) -> None:
        self.code, self.details, self.trailing = code, details, trailing
        if self.initial is None:
            self.initial = ()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.responses is not None:
            self.responses.end()
        if self._waiters is not None:
            self.wake()
        self._registry.discard(self)
        if self._callbacks is not None:
            callbacks, self._callbacks = self._callbacks, None
            for callback in callbacks:
                try:
                    callback()
                except Exception:
                    log.exception("a callback of a call failed")

    def _expire(self) -> None:
        self._timer = None
        self.leave(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")

    def _too_large(self, size: int) -> str:
        return f"Sent message larger than max ({size} vs. {self.max_message_bytes})"
