"""The call objects that stubs return, compatible with those of `grpc.aio`.

An abandoned call is cancelled if it may receive more messages; one with a single response
continues.
"""

import asyncio
import inspect
import logging
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
)
from functools import partial
from typing import Any, Self

import grpc

from services.common.inprocess.exchange import Exchange
from services.common.inprocess.pipe import Pipe, Receiver

Deserialize = Callable[[bytes], Any]
Requests = AsyncIterable[Any] | Iterable[Any]

log = logging.getLogger(__name__)

# Cached: reading it from the enum takes as long as a call.
_OK = grpc.StatusCode.OK

_CANCELLED = "Locally cancelled by application!"
_ABANDONED = "Cancelled upon garbage collection!"
_OVER = "RPC already finished."
_HALF_CLOSED = 'RPC is half closed after calling "done_writing".'
_MIXED = "The iterator and read/write APIs may not be mixed on a single RPC."


class Call:
    """Base class of all calls; see `grpc.aio.Call`."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def cancel(self) -> bool:
        """Cancel the call; return False if it has already ended."""
        return self._exchange.cancel(_CANCELLED)

    def cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        return self._exchange.code is grpc.StatusCode.CANCELLED

    def done(self) -> bool:
        """Return whether the call has ended."""
        return self._exchange.code is not None

    def time_remaining(self) -> float | None:
        """Return the seconds until its deadline, or None."""
        return self._exchange.time_remaining()

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Register a callback that is called with the call when it ends."""
        self._exchange.on_end(partial(callback, self))

    async def initial_metadata(self) -> grpc.aio.Metadata:
        """Return the initial metadata."""
        await self._exchange.begun()
        return grpc.aio.Metadata(*self._exchange.initial or ())

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        """Return the trailing metadata."""
        await self._exchange.over()
        return grpc.aio.Metadata(*self._exchange.trailing)

    async def code(self) -> grpc.StatusCode:
        """Return the status code."""
        await self._exchange.over()
        assert self._exchange.code is not None
        return self._exchange.code

    async def details(self) -> str:
        """Return the status message."""
        await self._exchange.over()
        return self._exchange.details

    async def debug_error_string(self) -> str:
        """Return the status message."""
        return await self.details()

    async def wait_for_connection(self) -> None:
        """Return at once, as a call starts when it is created.

        Raises:
            grpc.aio.AioRpcError: the call has failed.
        """
        if self._exchange.code is not None:
            self._raise_for_status()

    def _raise_for_status(self) -> None:
        exchange = self._exchange
        if exchange.is_cancelled_here:
            raise asyncio.CancelledError
        if exchange.code is not _OK:
            assert exchange.code is not None
            raise grpc.aio.AioRpcError(
                exchange.code,
                grpc.aio.Metadata(*exchange.initial or ()),
                grpc.aio.Metadata(*exchange.trailing),
                exchange.details,
                exchange.details,
            )


class _OneResponse(Call):
    """A call with one response, which awaiting the call returns."""

    def __init__(self, exchange: Exchange, deserialize: Deserialize | None) -> None:
        self._exchange = exchange
        self._deserialize = deserialize

    def __await__(self) -> Generator[Any, None, Any]:
        exchange = self._exchange
        if exchange.serve_here is not None:
            yield from exchange.serve_here()
        while exchange.code is None:
            try:
                yield from exchange.wait_for_change()
            except asyncio.CancelledError:
                self.cancel()
                raise
        if exchange.code is not _OK:
            self._raise_for_status()
        if self._deserialize is not None and isinstance(exchange.response, bytes):
            exchange.response = self._deserialize(exchange.response)
            self._deserialize = None
        return exchange.response


class _ManyResponses(Call):
    """A call with a response stream."""

    _is_iterated = _is_read = False

    def __init__(self, exchange: Exchange, deserialize: Deserialize | None) -> None:
        assert exchange.responses is not None, "it has one response"
        self._exchange = exchange
        self._responses = exchange.responses
        self._deserialize = deserialize

    def __del__(self) -> None:
        if self._exchange.code is None:
            self._exchange.cancel(_ABANDONED)

    def __aiter__(self) -> AsyncIterator[Any]:
        if self._is_read:
            raise grpc.aio.UsageError(_MIXED)
        self._is_iterated = True
        return _Responses(self)

    def read(self) -> Coroutine[Any, Any, Any]:
        """Return the next message, `grpc.aio.EOF` at the end.

        Raises:
            grpc.aio.AioRpcError: the call failed.
            asyncio.CancelledError: the call was cancelled by this side.
        """
        if self._is_iterated:
            raise grpc.aio.UsageError(_MIXED)
        self._is_read = True
        return self.next()

    async def deliver(self, receiver: Receiver) -> None:
        """Pass every message to a receiver as it is sent; see `delivery.deliver`."""
        if self._is_iterated:
            raise grpc.aio.UsageError(_MIXED)
        self._is_read = True
        responses = self._responses
        serve_here = self._exchange.serve_here
        try:
            while responses.messages:
                if receiver.receive(await self.next()):
                    await receiver.drain()
            responses.receiver = receiver
            if serve_here is not None:
                await _Serving(serve_here)
            while not responses.is_ended:
                await responses.wait_for_change()
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            responses.receiver = None
        if responses.failure is not None:
            self.cancel()
            raise responses.failure
        if self._exchange.code is not _OK:
            self._raise_for_status()

    async def next(self) -> Any:
        """Read the next message, for iteration and for `read`."""
        responses = self._responses
        while not (responses.messages or responses.is_ended):
            try:
                await responses.wait_for_change()
            except asyncio.CancelledError:
                self.cancel()
                raise
        exchange = self._exchange
        if not responses.messages:
            if exchange.code is not _OK:
                self._raise_for_status()
            return grpc.aio.EOF
        message = responses.take()
        if exchange.status is not None and not responses.messages:
            exchange.conclude()
        if self._deserialize is not None and isinstance(message, bytes):
            return self._deserialize(message)
        return message


class _Responses:
    """Iterator of a call's responses; a generator would keep an abandoned call alive."""

    def __init__(self, call: _ManyResponses) -> None:
        self._call = call

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self._call.next()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        return message


class _Serving:
    """Serves a call when it is awaited."""

    def __init__(self, serve_here: Callable[[], Generator[Any, None, None]]) -> None:
        self._serve_here = serve_here

    def __await__(self) -> Generator[Any, None, None]:
        return self._serve_here()


class _ManyRequests(Call):
    """A call with a request stream."""

    _sending: asyncio.Task[None] | None = None
    _is_half_closed = False

    def _begin(self, requests: Requests | None) -> None:
        assert self._exchange.requests is not None, "it has one request"
        self._requests = self._exchange.requests
        if requests is not None:
            self._sending = asyncio.create_task(_send(requests, self._exchange, self._requests))
            self._exchange.on_end(self._sending.cancel)

    async def write(self, request: Any) -> None:
        """Send a message; wait while the pipe is full.

        Raises:
            asyncio.InvalidStateError: the request stream is closed.
            grpc.aio.AioRpcError: the call failed meanwhile.
        """
        if self._sending is not None:
            raise grpc.aio.UsageError(_MIXED)
        if self.done():
            raise asyncio.InvalidStateError(_OVER)
        if self._is_half_closed:
            raise asyncio.InvalidStateError(_HALF_CLOSED)
        try:
            await _write(request, self._exchange, self._requests)
        except asyncio.CancelledError:
            self.cancel()
            raise
        if self.done():
            self._raise_for_status()

    async def done_writing(self) -> None:
        """Close the request stream; repeated calls have no effect."""
        if self._sending is not None:
            raise grpc.aio.UsageError(_MIXED)
        self._is_half_closed = True
        self._requests.end()


class UnaryUnaryCall(_OneResponse, grpc.aio.UnaryUnaryCall[Any, Any]):
    """One request, one response."""


class UnaryStreamCall(_ManyResponses, grpc.aio.UnaryStreamCall[Any, Any]):
    """One request, any number of responses."""


class StreamUnaryCall(_ManyRequests, _OneResponse, grpc.aio.StreamUnaryCall[Any, Any]):
    """Any number of requests, one response."""

    def __init__(
        self, exchange: Exchange, deserialize: Deserialize | None, requests: Requests | None
    ) -> None:
        super().__init__(exchange, deserialize)
        self._begin(requests)


class StreamStreamCall(_ManyRequests, _ManyResponses, grpc.aio.StreamStreamCall[Any, Any]):
    """Any number of requests and responses, independent of each other."""

    def __init__(
        self, exchange: Exchange, deserialize: Deserialize | None, requests: Requests | None
    ) -> None:
        super().__init__(exchange, deserialize)
        self._begin(requests)


async def _write(request: Any, exchange: Exchange, requests: Pipe) -> None:
    """Send a message, unless the call has ended; wait while the pipe is full."""
    if exchange.code is None and exchange.send_request(request):
        await requests.drained()


async def _send(requests: Requests, exchange: Exchange, pipe: Pipe) -> None:
    """Send all requests of an iterator until the call ends; an error cancels the call."""
    try:
        if isinstance(requests, AsyncIterable):
            async for request in requests:
                await _write(request, exchange, pipe)
        else:
            for request in requests:
                await _write(request, exchange, pipe)
        pipe.end()
    except Exception:
        log.exception("the requests of a call could not be made")
        exchange.cancel(_CANCELLED)
    finally:
        if inspect.isasyncgen(requests):
            await requests.aclose()
