"""One call: what its caller and its servicer share, from the request to the status."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import grpc

from services.common.inprocess.pipe import Changing, Pipe

log = logging.getLogger(__name__)

Metadata = tuple[tuple[str, str | bytes], ...]

_OK = grpc.StatusCode.OK


class Exchange(Changing):
    """A call on its way.

    It ends with a status: the servicer's, once the caller has taken the messages before it,
    or one of the caller's side, when it is cancelled or out of time.

    Attributes:
        method: `/package.Service/Method`.
        metadata: what came with the call.
        max_message: bytes of a message, either way.
        deadline: when it ends at the latest, by the loop's clock, or None.
        requests: what the caller sends.
        responses: what the servicer sends.
        initial: the initial metadata, or None while it may still come.
        code: how the call ended, or None while it has not.
        details: the text of the status.
        trailing: the metadata of the status.
        is_cancelled_here: whether its caller cancelled it.
        is_answered: whether the servicer has ended it.
        on_leave: called when it ends by its caller's side.
    """

    __slots__ = (
        "_callbacks",
        "_registry",
        "_status",
        "_streams_responses",
        "_timer",
        "code",
        "deadline",
        "details",
        "initial",
        "is_answered",
        "is_cancelled_here",
        "max_message",
        "metadata",
        "method",
        "on_leave",
        "requests",
        "responses",
        "trailing",
    )

    def __init__(
        self,
        method: str,
        metadata: Metadata,
        *,
        registry: "set[Exchange]",
        streams_responses: bool,
        max_message: int,
        timeout: float | None,
    ) -> None:
        """Make a call.

        Args:
            method: `/package.Service/Method`.
            metadata: what goes with it.
            registry: holds the call until it has ended.
            streams_responses: whether more than one message may come.
            max_message: bytes of a message, either way.
            timeout: seconds it may take from now, or None.
        """
        self._streams_responses = streams_responses
        self._waiters = None
        self._registry = registry
        registry.add(self)
        self._callbacks: list[Callable[[], object]] | None = None
        self._status: tuple[grpc.StatusCode, str, Metadata] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.method = method
        self.metadata = metadata
        self.max_message = max_message
        self.deadline: float | None = None
        self.requests = Pipe()
        self.responses = Pipe()
        self.initial: Metadata | None = None
        self.code: grpc.StatusCode | None = None
        self.details = ""
        self.trailing: Metadata = ()
        self.is_cancelled_here = False
        self.is_answered = False
        self.on_leave: Callable[[], object] | None = None
        if timeout is not None:
            loop = asyncio.get_running_loop()
            self.deadline = loop.time() + timeout
            if timeout > 0:
                self._timer = loop.call_at(self.deadline, self._expire)
            else:
                self._expire()

    # What both sides ask.

    def time_remaining(self) -> float | None:
        """Return the seconds until the deadline, or None."""
        if self.deadline is None:
            return None
        return max(self.deadline - asyncio.get_running_loop().time(), 0.0)

    # The caller's side.

    def send_request(self, message: Any) -> None:
        """Send a message; one that is too large ends the call."""
        size = size_of(message)
        if size > self.max_message:
            self.leave(grpc.StatusCode.RESOURCE_EXHAUSTED, self._too_large("Sent", size))
        else:
            self.requests.put(message, size)

    def take(self) -> Any:
        """Return a response that is there; the last one lets the status through."""
        message = self.responses.take()
        if self._status is not None and self.responses.is_empty:
            self._finish(*self._status)
        return message

    def cancel(self, details: str) -> bool:
        """End the call, unless it has ended; return whether it had not."""
        if self.code is not None:
            return False
        self.is_cancelled_here = True
        self.leave(grpc.StatusCode.CANCELLED, details)
        return True

    def leave(self, code: grpc.StatusCode, details: str) -> None:
        """End the call from the caller's side, unless it has ended."""
        if self.code is None:
            self.requests.drop()
            self.responses.drop()
            self._finish(code, details, ())
            if self.on_leave is not None:
                self.on_leave()

    def on_end(self, callback: Callable[[], object]) -> None:
        """Call back when it has ended, at once if it has."""
        if self.code is not None:
            callback()
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    async def begun(self) -> None:
        """Wait until there is initial metadata."""
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

    def send_response(self, message: Any) -> None:
        """Send a message; one that is too large ends the call."""
        size = size_of(message)
        if size > self.max_message:
            self.answer(grpc.StatusCode.RESOURCE_EXHAUSTED, self._too_large("Sent", size), ())
            return
        if self.initial is None:
            self.begin(())
        self.responses.put(message, size)

    def answer(self, code: grpc.StatusCode, details: str, trailing: Metadata) -> None:
        """End the call with a status; responses that nobody has read yet come before it."""
        self.is_answered = True
        self.requests.drop()
        if self.code is not None:
            return
        if code is _OK and not self._streams_responses and self.responses.is_empty:
            code, details = grpc.StatusCode.INTERNAL, "the servicer sent no response"
        if self._streams_responses and not self.responses.is_empty:
            self._status = code, details, trailing
            self.responses.end()
        else:
            self._finish(code, details, trailing)

    def _finish(self, code: grpc.StatusCode, details: str, trailing: Metadata) -> None:
        self.code, self.details, self.trailing = code, details, trailing
        if self.initial is None:
            self.initial = ()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.responses.end()
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

    def _too_large(self, what: str, size: int) -> str:
        return f"{what} message larger than max ({size} vs. {self.max_message})"


def size_of(message: Any) -> int:
    """Return the bytes of a message, which may be serialized already."""
    if isinstance(message, bytes):
        return len(message)
    size: int = message.ByteSize()
    return size
