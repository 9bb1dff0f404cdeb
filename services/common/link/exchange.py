"""One call as its caller sees it, whatever its kind: from the request to the status."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

import grpc

from services.common.link import frames
from services.common.link.frames import Metadata
from services.common.link.receiving import Inbox
from services.common.link.sending import Outbox, Outgoing

log = logging.getLogger(__name__)

_OK = grpc.StatusCode.OK.value[0]
CODES = {code.value[0]: code for code in grpc.StatusCode}


class Link(Protocol):
    """What an exchange needs of the connection it runs on."""

    outbox: Outbox

    def take_in(self, exchange: "Exchange") -> int:
        """Give a number to a call that begins."""
        ...

    def forget(self, call: int) -> None:
        """Drop a call that is over."""
        ...


class Exchange:
    """One call, from its making to its status.

    It begins when it is given a link (`start`) and ends with a status: the server's, or
    one of its own when it is cancelled, runs out of time or loses its link.

    Attributes:
        is_patient: whether it waits for a server that cannot be reached.
        code: how it ended, or None while it has not.
        is_cancelled_here: whether its caller cancelled it.
        inbox: what came; None until it begins.
        outgoing: what is sent; None until it begins.
    """

    __slots__ = (
        "_callbacks",
        "_deadline",
        "_held_status",
        "_initial",
        "_link",
        "_loop",
        "_max_message",
        "_metadata",
        "_method",
        "_number",
        "_on_unstarted_end",
        "_request",
        "_streams_responses",
        "_timer",
        "_waiters",
        "code",
        "details",
        "inbox",
        "is_cancelled_here",
        "is_patient",
        "outgoing",
        "trailing",
    )

    def __init__(
        self,
        method: bytes,
        metadata: bytes,
        request: bytes | None,
        *,
        streams_responses: bool,
        max_message: int,
        timeout: float | None,
        is_patient: bool,
    ) -> None:
        """Make a call that has yet to begin.

        Args:
            method: `/package.Service/Method`.
            metadata: packed.
            request: its one message; None where it streams them.
            streams_responses: whether more than one message may come.
            max_message: bytes of a message, either way.
            timeout: seconds it may take from now, or None.
            is_patient: whether it waits for a server that cannot be reached.
        """
        self._loop = asyncio.get_running_loop()
        self._method = method
        self._metadata = metadata
        self._request = request
        self._streams_responses = streams_responses
        self._max_message = max_message
        self._link: Link | None = None
        self._number = 0
        self._initial: Metadata | None = None
        self._held_status: tuple[int, str, Metadata] | None = None
        self._waiters: list[asyncio.Future[None]] | None = None
        self._callbacks: list[Callable[[], object]] | None = None
        self._on_unstarted_end: Callable[[Exchange], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self.is_patient = is_patient
        self.code: grpc.StatusCode | None = None
        self.details = ""
        self.trailing: Metadata = ()
        self.is_cancelled_here = False
        self.inbox: Inbox | None = None
        self.outgoing: Outgoing | None = None
        if timeout is not None:
            self._deadline = self._loop.time() + timeout
            self._timer = self._loop.call_at(self._deadline, self._expire)

    def wait_for_link(self, on_unstarted_end: Callable[["Exchange"], None]) -> None:
        """Be called back when it ends before it has begun."""
        self._on_unstarted_end = on_unstarted_end

    def start(self, link: Link) -> None:
        """Begin, on a link."""
        self._link = link
        self._on_unstarted_end = None
        self._number = number = link.take_in(self)
        self.outgoing = outgoing = Outgoing(link.outbox, number)
        self.inbox = Inbox(link.outbox, number, is_wanted=not self._streams_responses)
        remaining = self.time_remaining()
        request, self._request = self._request, None
        outgoing.open(
            frames.open_call(
                number,
                self._method,
                self._metadata,
                None if remaining is None else int(remaining * 1000),
                one_message=request is not None,
            )
        )
        if request is not None:
            self.send(request)
        if self._waiters is not None:
            self._wake()

    def send(self, message: bytes) -> None:
        """Send a message; one that is too large ends the call."""
        assert self.outgoing is not None
        if len(message) > self._max_message:
            self._refuse("Sent", len(message))
        else:
            self.outgoing.send_message(message)

    def half_close(self) -> None:
        """Say that no message follows."""
        assert self.outgoing is not None
        self.outgoing.send_frame(frames.bare(self._number, frames.HALF_CLOSE))

    def cancel(self, details: str) -> bool:
        """End the call, unless it has ended; tell whether it had not."""
        if self.code is not None:
            return False
        self.is_cancelled_here = True
        self.end_here(grpc.StatusCode.CANCELLED, details)
        return True

    def end_here(self, code: grpc.StatusCode, details: str) -> None:
        """End the call from this side, and tell the server."""
        if self.code is not None:
            return
        if self.outgoing is not None and self._link is not None:
            self.outgoing.drop()
            if not self.outgoing.is_unheard_of:
                self._link.outbox.add(frames.bare(self._number, frames.CANCEL))
        self.lose(code, details)

    def lose(self, code: grpc.StatusCode, details: str) -> None:
        """End the call because of something that the server cannot be told."""
        if self.inbox is not None:
            self.inbox.drop()
        self._finish(code, details, ())

    def time_remaining(self) -> float | None:
        """Give the seconds until the deadline."""
        if self._deadline is None:
            return None
        return max(self._deadline - self._loop.time(), 0.0)

    def on_end(self, callback: Callable[[], object]) -> None:
        """Call back when it has ended, at once if it has."""
        if self.code is not None:
            callback()
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    async def changed(self) -> None:
        """Wait until the call begins, gets initial metadata, or ends."""
        waiter = self._loop.create_future()
        if self._waiters is None:
            self._waiters = [waiter]
        else:
            self._waiters.append(waiter)
        await waiter

    async def over(self) -> None:
        """Wait until the call has ended."""
        while self.code is None:
            await self.changed()

    @property
    def initial(self) -> Metadata | None:
        """The initial metadata, or None while it may still come."""
        if self._initial is None and self.code is not None:
            return ()
        return self._initial

    def take(self) -> bytes:
        """Give a message that is there; the last one lets the status through."""
        assert self.inbox is not None
        message = self.inbox.take()
        if self._held_status is not None and self.inbox.is_empty:
            self._finish_from_server(*self._held_status)
        return message

    def on_headers(self, metadata: Metadata) -> None:
        """Take initial metadata in."""
        self._initial = metadata
        if self._waiters is not None:
            self._wake()

    def on_message(self, size: int, piece: bytes) -> None:
        """Take the beginning of a message in."""
        if self._initial is None:
            self.on_headers(())
        if size > self._max_message:
            self._refuse("Received", size)
        else:
            assert self.inbox is not None
            self.inbox.begin(size, piece)

    def on_status(self, number: int, details: str, trailing: Metadata) -> None:
        """Take the server's status in; messages that nobody has read yet come before it."""
        assert self.inbox is not None
        if self._streams_responses and not self.inbox.is_empty:
            self._held_status = (number, details, trailing)
            self.inbox.end(cuts=number != _OK)
        else:
            self._finish_from_server(number, details, trailing)

    def _finish_from_server(self, number: int, details: str, trailing: Metadata) -> None:
        assert self.inbox is not None
        code = CODES.get(number, grpc.StatusCode.UNKNOWN)
        if code is grpc.StatusCode.OK and not self._streams_responses and self.inbox.is_empty:
            code, details = grpc.StatusCode.INTERNAL, "the server sent no response"
        self.inbox.end(cuts=number != _OK)
        self._finish(code, details, trailing)

    def _finish(self, code: grpc.StatusCode, details: str, trailing: Metadata) -> None:
        if self.code is not None:
            return
        self.code, self.details, self.trailing = code, details, trailing
        self._request = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._link is not None:
            self._link.forget(self._number)
            self._link = None
        if self.outgoing is not None:
            self.outgoing.drop()
        if self._on_unstarted_end is not None:
            self._on_unstarted_end(self)
            self._on_unstarted_end = None
        if self._waiters is not None:
            self._wake()
        if self._callbacks is not None:
            self._call_back(self._callbacks)
            self._callbacks = None

    def _call_back(self, callbacks: list[Callable[[], object]]) -> None:
        for callback in callbacks:
            try:
                callback()
            except Exception:
                # One call's callback must not end the others, whose frames are in this batch.
                log.exception("a callback of a call failed")

    def _expire(self) -> None:
        self._timer = None
        self.end_here(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")

    def _refuse(self, what: str, size: int) -> None:
        self.end_here(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"{what} message larger than max ({size} vs. {self._max_message})",
        )

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)
