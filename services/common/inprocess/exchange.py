"""The state of one call, shared by its caller and its servicer."""

import asyncio
import logging
from collections.abc import Callable, Generator
from typing import Any

import grpc

from services.common.inprocess.pipe import ChangeNotifier, Pipe

log = logging.getLogger(__name__)

Metadata = tuple[tuple[str, str | bytes], ...]

_OK = grpc.StatusCode.OK


class Exchange(ChangeNotifier):
    """A running call.

    The call ends with a status: that of the servicer, after the caller has read all responses, or
    one of the caller's side, when the call is cancelled or its deadline has passed. It also serves
    as the `grpc.HandlerCallDetails` of interceptors, with `method` and `invocation_metadata`.

    Attributes:
        method: `/package.Service/Method`.
        invocation_metadata: metadata that the caller sent.
        max_message_bytes: maximum size of a message in bytes, in both directions.
        deadline: time at which the call expires, on the loop's clock, or None.
        request: the request of a call with one request, until it is read.
        requests: the request stream, or None.
        response: the response of a call with one response, once it has been sent.
        responses: the response stream, or None.
        initial: the initial metadata, or None until it is known.
        status: the servicer's status while responses before it are unread, or None.
        code: the final status code, or None while the call is running.
        details: the message of the final status.
        trailing: the trailing metadata.
        is_cancelled_here: whether the caller cancelled the call.
        is_answered: whether the servicer has ended the call.
        is_over: whether the servicer or the caller has ended the call.
        on_leave: called when the caller's side ends the call.
        serve_here: serves the call in the awaiting task; None once serving has begun.
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
        """Create a call. Arguments are positional, which is faster.

        Args:
            loop: the running event loop; CPython 3.11 needs a system call to get it.
            method: `/package.Service/Method`.
            metadata: the invocation metadata.
            request: the request, or None if the call `streams_requests`.
            registry: set that contains the call until it ends.
            max_message_bytes: maximum size of a message in bytes, in both directions.
            timeout: seconds until the deadline, or None.
            streams_requests: whether the caller sends a stream of messages.
            streams_responses: whether the servicer sends a stream of messages.
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
        # Rounding may make the difference slightly larger than the timeout.
        return max(min(self.deadline - self.loop.time(), self._timeout), 0.0)

    # The caller's side.

    def send_request(self, message: Any) -> bool:
        """Send a message of a request stream; a message that is too large ends the call.

        Return whether the sender should wait until the servicer has read messages.
        """
        requests = self.requests
        assert requests is not None, "it has one request"
        size = len(message) if isinstance(message, bytes) else message.ByteSize()
        if size > self.max_message_bytes:
            self.refuse(size)
            return False
        return requests.put(message, size)

    def refuse(self, size: int) -> None:
        """End the call because a request is too large, with `size` bytes."""
        self.leave(grpc.StatusCode.RESOURCE_EXHAUSTED, self._too_large(size))

    def conclude(self) -> None:
        """End the call with the servicer's status, after the last response has been read."""
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
        """End the call from the caller's side, unless it has already ended."""
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
            await self.wait_for_change()

    async def over(self) -> None:
        """Wait until the call has ended."""
        while self.code is None:
            await self.wait_for_change()

    # The servicer's side.

    def begin(self, initial: Metadata) -> None:
        """Send initial metadata."""
        self.initial = initial
        self.notify_all()

    def send_response(self, message: Any) -> bool:
        """Send a response; one that is queued and too large ends the call.

        If the call has a single response, the first one counts. Return whether the servicer should
        wait until the caller has read responses.
        """
        responses = self.responses
        if responses is not None and responses.receiver is not None:
            size = 0  # the receiver gets it at once: it is not queued
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
            self.notify_all()
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
