"""The server's end of one link."""

import asyncio
from typing import Any

import grpc

from gateway.link.v1.link_pb2 import OpenResponse
from services.common.link import frames
from services.common.link.context import CallDetails
from services.common.link.frames import FrameError
from services.common.link.receiving import Holdings, Inbox
from services.common.link.sending import Outbox, Outgoing
from services.common.link.served import Find, ServedCall

# Calls of one link at a time, and bytes that it holds for them beside large messages.
MAX_CALLS = 10_000
_MAX_UNREAD = 64 << 20
# So many of the largest messages are put together at a time.
_LARGEST_AT_ONCE = 2


class Session:
    """One open link: takes calls in, and carries frames between them and the stream.

    Attributes:
        stream: the servicer context of the link itself.
        outbox: what is to be sent.
    """

    def __init__(self, stream: Any, find: Find, max_message: int) -> None:
        self.stream = stream
        self._find = find
        self._max_message = max_message
        self._calls: dict[int, ServedCall] = {}
        self._last = 0
        room = _LARGEST_AT_ONCE * max_message
        self._holdings = Holdings(room=room)
        self._max_unread = room + _MAX_UNREAD
        self._goes_away = False
        self.outbox = Outbox(self._calls)

    async def run(self) -> None:
        """Serve the link until the caller closes it, or it breaks.

        Raises:
            FrameError: the caller sent what makes no sense.
        """
        pumping = asyncio.create_task(self.outbox.pump(self._write))
        try:
            while (message := await self.stream.read()) is not grpc.aio.EOF:
                self._receive(message.frames)
        finally:
            pumping.cancel()
            calls = list(self._calls.values())
            for call in calls:
                call.leave()
            await asyncio.wait([pumping])
            for call in calls:
                await call.stopped()

    def go_away(self) -> None:
        """Take no more calls; the caller closes the link after the last one."""
        self._goes_away = True
        self.outbox.add(frames.bare(0, frames.GOAWAY))

    def forget(self, number: int) -> None:
        """Drop a call that is over."""
        self._calls.pop(number, None)

    async def _write(self, batch: bytes) -> None:
        try:
            await self.stream.write(OpenResponse(frames=batch))
        except grpc.aio.BaseError:
            # The link has ended, and whoever reads it is told too.
            await asyncio.get_running_loop().create_future()

    def _receive(self, batch: bytes) -> None:
        for number, kind, at, stop in frames.scan(batch):
            if kind == frames.OPEN:
                self._begin(number, batch, at, stop)
                continue
            call = self._calls.get(number)
            if kind == frames.MESSAGE:
                size, piece = frames.read_message(batch, at, stop)
                if call is not None and not call.is_over:
                    self._take_message(call, size, piece)
            elif number > self._last:
                raise FrameError("a frame of a call that was never made")
            elif call is not None:
                self._receive_rare(call, kind, batch, at, stop)

    def _receive_rare(self, call: ServedCall, kind: int, batch: bytes, at: int, stop: int) -> None:
        if kind == frames.CREDIT:
            call.outgoing.add_credit(frames.read_credit(batch, at, stop))
        elif kind == frames.CANCEL:
            call.leave()
        elif kind == frames.MORE:
            if not call.is_over:
                call.inbox.go_on(batch[at:stop])
                self._check_room(call)
        elif kind == frames.HALF_CLOSE:
            if not call.is_over:
                call.inbox.end()
        else:
            raise FrameError("a frame that only a server sends")

    def _begin(self, number: int, batch: bytes, at: int, stop: int) -> None:
        method, metadata, deadline_ms, takes_one = frames.read_open(batch, at, stop)
        if number <= self._last:
            raise FrameError("a call whose number is not higher than the last")
        self._last = number
        inbox = Inbox(self.outbox, number, self._holdings, takes_one=takes_one)
        call = ServedCall(
            self,
            number,
            CallDetails(method, metadata),
            deadline_ms,
            inbox,
            Outgoing(self.outbox, number),
            self._max_message,
        )
        if self._goes_away:
            call.end(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")
        elif len(self._calls) >= MAX_CALLS:
            call.end(grpc.StatusCode.UNAVAILABLE, f"more than {MAX_CALLS:,} calls on one link")
        else:
            self._calls[number] = call
            call.start(self._find)

    def _take_message(self, call: ServedCall, size: int, piece: bytes) -> None:
        if size > self._max_message:
            call.end(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"Received message larger than max ({size} vs. {self._max_message})",
            )
        else:
            call.inbox.begin(size, piece)
            self._check_room(call)

    def _check_room(self, call: ServedCall) -> None:
        if self._holdings.unread > self._max_unread:
            call.end(grpc.StatusCode.UNAVAILABLE, "more is sent than the server can take in")
