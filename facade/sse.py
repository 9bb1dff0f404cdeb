"""Streamed responses: events of a gRPC call as server-sent events.

Headers are held until the first content, so that an earlier failure gets its HTTP status, but no
longer than `hold_headers_s`. After that a keepalive is sent after each `keepalive_s` without
events. One message from the service becomes one write, which includes the end of the answer if
that arrives with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import grpc

from facade.dialects.foreign_parts import foreign_parts_of_events
from facade.dialects.stream_formats import StreamFormat
from facade.failures import to_gateway_error
from facade.http.exchange import AnswerSummary, Exchange
from facade.http.responses import StreamedResponse
from facade.request_context import stopping
from facade.route_headers import DROPPED, add_dropped, answer_headers
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import Event, RouteInfo
from services.common.errors import GatewayError
from services.common.grpc.inprocess.context import Receiver
from services.common.process.timer_wheel import IdleTimer
from services.common.text.texts import MAX_NAME

log = logging.getLogger(__name__)

# Names of dropped parts that a stream holds for its last comment, which has no room for more.
_MOST_DROPPED = 1_000


class Encoder(Protocol):
    """Encodes events as the stream of a dialect.

    Attributes:
        format: the format of the stream.
        route: the model that serves the answer, once known.
        usage: token usage so far.
    """

    route: RouteInfo
    usage: Usage

    @property
    def format(self) -> StreamFormat:
        """See the class."""

    def encode(self, events: Sequence[Event]) -> bytes:
        """Return the bytes of a batch of events, possibly none."""
        ...

    def finish(self) -> bytes:
        """Return the bytes that end a complete answer."""
        ...

    def keepalive(self) -> bytes:
        """Return bytes that clients ignore."""
        ...

    def error(self, error: GatewayError) -> bytes:
        """Return the bytes that end an answer with an error."""
        ...


class EventMessage(Protocol):
    """A `StreamGenerateResponse`, or the object that replaces it within a process."""

    @property
    def events(self) -> Sequence[Event]:
        """The events of a batch, in order."""


class EndObserver(Protocol):
    """An observer of the end of a streamed response."""

    async def before_end(self) -> None:
        """Run before the end of a response is written.

        Raises:
            GatewayError: it failed; a complete answer ends with this error instead.
        """
        ...

    async def left(self) -> None:
        """Handle a client that left after the response began and before its end."""
        ...


async def relay(
    exchange: Exchange,
    begin: Callable[[Receiver], Awaitable[None]],
    encoder: Encoder,
    observer: EndObserver | None = None,
) -> StreamedResponse:
    """Respond with the events of a StreamGenerate.

    Args:
        exchange: the request.
        begin: returns an awaitable that passes all messages of the call to a receiver.
        encoder: encodes the events.
        observer: called at the end, once `encoder` has encoded it.

    Raises:
        grpc.aio.AioRpcError: the call failed before anything was sent.
    """
    context = exchange.context
    stream = _EventStream(exchange, encoder)
    try:
        try:
            delivery = begin(stream)
            del begin  # it holds the request
            await delivery
        except (grpc.aio.AioRpcError, LookupError, TypeError, ValueError) as error:
            # Also events that cannot be encoded.
            if not exchange.has_begun:
                raise
            return await stream.end(await _failed(exchange, encoder, error, observer))
        except (asyncio.CancelledError, ConnectionError) as error:
            if not exchange.has_begun:
                raise
            if isinstance(error, ConnectionError) or not context.requests.uncancel():
                if observer is not None:
                    await observer.left()
                raise
            failure = stopping()
            context.metrics.limits_reached.labels(failure.limit).inc()
            return await stream.end(await _failed(exchange, encoder, failure, observer))
        if observer is None:
            return await stream.end(encoder.finish())
        return await stream.end(await _finished(exchange, encoder, observer))
    finally:
        summary = AnswerSummary.of(encoder.route, encoder.usage)
        if stream.begun_by and stream.begun_by != (summary.model, summary.provider):
            summary = summary._replace(begun_by=stream.begun_by)
        exchange.answer_summary = summary
        if not stream.is_stopped:
            stream.stop()
        timing = exchange.stream_timing(context.clock.monotonic() - exchange.began)
        if timing is not None:
            context.metrics.streamed(summary.provider, *timing)


async def _finished(exchange: Exchange, encoder: Encoder, observer: EndObserver) -> bytes:
    """Return the end of a complete answer, after calling the observer.

    Raises:
        GatewayError: the observer failed, and nothing was sent so far.
    """
    end = encoder.finish()
    try:
        await observer.before_end()
    except GatewayError as error:
        if not exchange.has_begun:
            raise
        exchange.failure = error.code
        return encoder.error(error)
    return end


async def _failed(
    exchange: Exchange, encoder: Encoder, error: Exception, observer: EndObserver | None
) -> bytes:
    """Return the end of an interrupted answer, after calling the observer."""
    failure = to_gateway_error(error, exchange)
    exchange.failure = failure.code
    end = encoder.error(failure)
    if observer is not None:
        try:
            await observer.before_end()
        except GatewayError as other:
            log.warning("the end of a failed answer was not stored", extra={"code": other.code})
    return end


class _EventStream:
    """Receives the messages of a call; writes held headers, events, and keepalives.

    Attributes:
        begun_by: the model and provider that began the answer; None until then.
        is_stopped: whether nothing but the end of the answer is written any more.
    """

    def __init__(self, exchange: Exchange, encoder: Encoder) -> None:
        context = exchange.context
        limits = context.settings.limits
        self._exchange = exchange
        self._connection = exchange.connection
        self._encoder = encoder
        self.begun_by: tuple[str, str] | None = None
        self.is_stopped = False
        self._headers: dict[str, str] = {}
        self._dropped: dict[str, None] = {}  # parts of the answer that have not been named yet
        self._held: list[bytes] = []
        # Writes the held data, unless the end of the answer is written before.
        self._flush: asyncio.Handle | None = None
        self._response: StreamedResponse | None = None
        self._has_content = False
        self._keepalive_s = limits.keepalive_s
        self._timer = IdleTimer(context.timers, limits.hold_headers_s, self._on_silence)

    def receive(self, message: EventMessage) -> bool:
        """Write a batch of events; return whether the client reads too slowly.

        Events before the first content are held.

        Raises:
            ConnectionError: the client has left.
        """
        events = message.events
        if not self._has_content:
            self._look_for_content(events)
        data = self._encoder.encode(events)
        for name in foreign_parts_of_events(events, self._exchange.dialect):
            if len(self._dropped) < _MOST_DROPPED:
                self._dropped[name[:MAX_NAME]] = None
        if self._response is None:
            if not self._has_content:
                self._held.append(data)
                return False
            self._write(data, events)
        elif data:
            self._timer.touch()
            self._write(data, events)
        return self._connection.writing_paused

    async def drain(self) -> None:
        """Wait while the client does not read.

        Raises:
            ConnectionError: the client has left.
        """
        await self._connection.drain()

    async def end(self, data: bytes) -> StreamedResponse:
        """Write the last data, and wait while the client does not read."""
        response = self._response or self._begin()
        self.stop()
        note = self._note() if self._dropped and self._encoder.format.has_comments else b""
        response.write(*self._held, note, data, is_last=True)
        if self._connection.writing_paused:
            await self._connection.drain()
        return response

    def stop(self) -> None:
        """Stop writing: no keepalives and no held data are written after this."""
        self.is_stopped = True
        self._timer.stop()
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None

    def _look_for_content(self, events: Sequence[Event]) -> None:
        """Note the first content, and the headers that name the serving model."""
        exchange = self._exchange
        for event in events:
            kind = event.WhichOneof("kind")
            if kind == "start":
                route = event.start.route
                self.begun_by = route.model, route.provider
                self._headers |= answer_headers(exchange, route)
                continue
            if kind == "block_start":
                # Providers start a text block before they have text.
                block = event.block_start
                is_content = block.WhichOneof("kind") not in ("text", "thinking") or bool(
                    block.text or block.thinking.text
                )
            else:
                is_content = kind not in ("usage", "unknown")
            if is_content:
                self._has_content = True
                exchange.first_content_s = exchange.context.clock.monotonic() - exchange.began
                return

    def _begin(self) -> StreamedResponse:
        self._timer.stop()
        self._timer = IdleTimer(self._exchange.context.timers, self._keepalive_s, self._on_silence)
        if self._dropped:
            add_dropped(self._headers, self._dropped)
            self._dropped.clear()
        content_type = self._encoder.format.content_type
        self._response = response = StreamedResponse(self._exchange, self._headers, content_type)
        return response

    def _note(self) -> bytes:
        """Return a comment with the dropped parts of the answer that the head does not name."""
        headers: dict[str, str] = {}
        add_dropped(headers, self._dropped)
        return b": %s: %s\n\n" % (DROPPED.encode(), headers[DROPPED].encode())

    def _write(self, data: bytes, events: Sequence[Event]) -> None:
        """Write held data and `data`, in the next iteration of the loop if a choice ends with it.

        The end of the answer mostly arrives before that; then one system call writes both.
        """
        response = self._response or self._begin()
        # A choice ends with its finish, or with that and its usage.
        has_finish = bool(events) and (
            events[-1].HasField("finish") or (len(events) > 1 and events[-2].HasField("finish"))
        )
        if self._flush is None and not has_finish:
            response.write(*self._take_held(), data)
            return
        self._held.append(data)
        if self._flush is None:
            loop = asyncio.get_running_loop()
            self._flush = loop.call_soon(self._on_turn, response)

    def _take_held(self) -> list[bytes]:
        held, self._held = self._held, []
        return held

    def _on_turn(self, response: StreamedResponse) -> None:
        self._flush = None
        self._try_to_write(response, *self._take_held())

    def _on_silence(self) -> None:
        # Not needed while the client still has data to read.
        if self._connection.writing_paused:
            return
        response = self._response or self._begin()
        held = self._take_held()
        self._try_to_write(response, *held if any(held) else (self._encoder.keepalive(),))

    @staticmethod
    def _try_to_write(response: StreamedResponse, *parts: bytes) -> None:
        try:
            response.write(*parts)
        except ConnectionError:
            pass  # the task of the request handles it
