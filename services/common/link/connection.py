"""The caller's end of one link."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import grpc

from gateway.link.v1.link_pb2 import OpenRequest
from services.common.link import frames
from services.common.link.exchange import Exchange
from services.common.link.frames import FrameError
from services.common.link.sending import Outbox

log = logging.getLogger(__name__)


class Connection:
    """One open link: numbers its calls, and carries frames between them and the stream.

    Attributes:
        takes_calls: whether further calls may begin on it.
        outbox: what is to be sent.
    """

    def __init__(self, stream: Any, on_leaving: Callable[["Connection"], None]) -> None:
        """Run a link.

        Args:
            stream: the gRPC call, which the server has accepted.
            on_leaving: called when no further calls may begin on it.
        """
        self._stream = stream
        self._on_leaving = on_leaving
        self._calls: dict[int, Exchange] = {}
        self._last = 0
        self.takes_calls = True
        self.outbox = Outbox(self._calls)
        self._running = asyncio.create_task(self._run())

    def take_in(self, exchange: Exchange) -> int:
        """Give a number to a call that begins."""
        self._last += 1
        self._calls[self._last] = exchange
        if self._last == frames.MAX_CALL:
            self._leave()
        return self._last

    def forget(self, call: int) -> None:
        """Drop a call that is over; with the last one, a link that takes no more closes."""
        self._calls.pop(call, None)
        if not self._calls and not self.takes_calls:
            self._stream.cancel()

    def calls(self) -> list[Exchange]:
        """Give the calls that are in flight."""
        return list(self._calls.values())

    def on_end(self, callback: Callable[["Connection"], None]) -> None:
        """Call back when the link has ended."""
        self._running.add_done_callback(lambda _: callback(self))

    async def close(self) -> None:
        """Close the link, and with it its calls."""
        self._stream.cancel()
        await asyncio.wait([self._running])

    async def _run(self) -> None:
        pumping = asyncio.create_task(self.outbox.pump(self._write))
        details = "the link to the service broke"
        try:
            while (message := await self._stream.read()) is not grpc.aio.EOF:
                self._receive(message.frames)
        except FrameError as error:
            log.error("a link is closed: its server sent what makes no sense: %s", str(error))
        except grpc.aio.AioRpcError as error:
            details = f"{details}: {error.details()}"
        except asyncio.CancelledError:
            # Reading a stream that was cancelled here says so in this way.
            if not self._stream.cancelled():
                raise
        finally:
            self._leave()
            self._stream.cancel()
            pumping.cancel()
            for exchange in self.calls():
                exchange.lose(grpc.StatusCode.UNAVAILABLE, details)
            await asyncio.wait([pumping])

    async def _write(self, batch: bytes) -> None:
        try:
            await self._stream.write(OpenRequest(frames=batch))
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
            # The link has ended, and whoever reads it says why.
            await asyncio.get_running_loop().create_future()

    def _leave(self) -> None:
        if self.takes_calls:
            self.takes_calls = False
            self._on_leaving(self)
            if not self._calls:
                self._stream.cancel()

    def _receive(self, batch: bytes) -> None:
        for number, kind, at, stop in frames.scan(batch):
            exchange = self._calls.get(number)
            if kind == frames.MESSAGE:
                size, piece = frames.read_message(batch, at, stop)
                if exchange is not None:
                    exchange.on_message(size, piece)
            elif kind == frames.STATUS:
                code, details, trailing = frames.read_status(batch, at, stop)
                if exchange is not None:
                    exchange.on_status(code, details, trailing)
            elif kind == frames.GOAWAY:
                self._leave()
            elif number > self._last:
                raise FrameError("a frame of a call that was never made")
            elif exchange is not None:
                _receive_rare(exchange, kind, batch, at, stop)


def _receive_rare(exchange: Exchange, kind: int, batch: bytes, at: int, stop: int) -> None:
    assert exchange.inbox is not None
    assert exchange.outgoing is not None
    if kind == frames.MORE:
        exchange.inbox.go_on(batch[at:stop])
    elif kind == frames.CREDIT:
        exchange.outgoing.add_credit(frames.read_credit(batch, at, stop))
    elif kind == frames.HEADERS:
        exchange.on_headers(frames.read_metadata(batch, at, stop))
    else:
        raise FrameError("a frame that only a caller sends")
