"""How an answer that is still coming reaches the caller, as server-sent events.

Headers wait for the first content, so that a failure before it is a true HTTP
status; a caller never waits longer than `hold_headers_s` for them, nor longer than
`keepalive_s` for a sign of life afterwards. One message from the service becomes
one write.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import grpc
from aiohttp import HttpVersion11, web

from facade.answers import send
from facade.context import ANSWERED, CALLER_PATHS, CONTEXT, FAILURE, Answered
from facade.draining import stopping
from facade.middlewares import told
from facade.served import served_headers
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import Event, Served
from services.common.errors import GatewayError
from services.common.idle import IdleTimer

_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


class Encoder(Protocol):
    """Turns events into the bytes of a dialect's stream.

    Attributes:
        served: who serves the answer, once that is known.
        usage: the tokens so far.
    """

    served: Served
    usage: Usage

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes of a batch of events, possibly none."""
        ...

    def finish(self) -> bytes:
        """Return what ends a whole answer."""
        ...

    def keepalive(self) -> bytes:
        """Return what a client reads past."""
        ...

    def error(self, error: GatewayError) -> bytes:
        """Return what ends an answer that broke off."""
        ...


async def relay(request: web.Request, call: Any, encoder: Encoder) -> web.StreamResponse:
    """Answer `request` with the events of `call`, a StreamGenerate that has begun.

    Raises:
        grpc.aio.AioRpcError: the call failed before anything was sent.
    """
    answer = _Answer(request, encoder)
    try:
        try:
            while (message := await call.read()) is not grpc.aio.EOF:
                await answer.go_on(message.events)
        except (grpc.aio.AioRpcError, LookupError, TypeError, ValueError) as error:
            # Also of events that no service of ours sends.
            if not answer.has_begun:
                raise
            failure = told(error, request)
            request[FAILURE] = failure.code
            return await answer.end(encoder.error(failure))
        except asyncio.CancelledError:
            context = request.app[CONTEXT]
            if not answer.has_begun or not context.drain.take_over():
                raise
            failure = stopping()
            context.metrics.limits_reached.labels(failure.limit).inc()
            request[FAILURE] = failure.code
            return await answer.end(encoder.error(failure))
        return await answer.end(encoder.finish())
    finally:
        request[ANSWERED] = Answered.of(encoder.served, encoder.usage)
        call.cancel()
        answer.stop()


class _Stream(web.StreamResponse):
    # Headers go out with the first content, as those of a `web.Response` do: one write.
    _send_headers_immediately = False


class _Answer:
    """What the caller gets: headers when they are due, and signs of life where nothing comes.

    Attributes:
        has_begun: whether the headers are on their way.
    """

    def __init__(self, request: web.Request, encoder: Encoder) -> None:
        limits = request.app[CONTEXT].settings.limits
        self.has_begun = False
        self._request = request
        self._connection = request.protocol
        self._in_chunks = request.version >= HttpVersion11
        self._encoder = encoder
        self._headers: dict[str, str] = dict(_HEADERS)
        self._held: list[bytes] = []
        self._response: web.StreamResponse
        self._keepalive_s = limits.keepalive_s
        self._timer = IdleTimer(limits.hold_headers_s, self._on_silence)
        self._sign: asyncio.Task[None] | None = None  # of life, that is being given

    async def go_on(self, events: Sequence[Event]) -> None:
        """Write what there is, in one go, and wait while the caller does not read.

        What comes before the first content waits for it.
        """
        if self._sign is not None:
            await self._sign
        data = self._encoder.encode(events)
        if not self.has_begun:
            self._held.append(data)
            if not self._are_due(events):
                return
            await self._begin()
            # Together with the headers.
            await self._response.write(self._all_held())
        elif data:
            self._timer.touch()
            # `StreamResponse.write` makes four calls of it.
            framed = b"%x\r\n%b\r\n" % (len(data), data) if self._in_chunks else data
            send(self._connection, framed)
        if self._connection.writing_paused:
            await self._request.writer.drain()

    async def end(self, data: bytes) -> web.StreamResponse:
        """Write the last."""
        if self._sign is not None:
            await self._sign
        if not self.has_begun:
            await self._begin()
            data = self._all_held() + data
        self._timer.stop()
        await self._response.write_eof(data)
        return self._response

    def stop(self) -> None:
        """Return no more signs of life."""
        self._timer.stop()
        if self._sign is not None:
            self._sign.cancel()

    def _are_due(self, events: Sequence[Event]) -> bool:
        """Return whether the headers are, and learn what stands in them."""
        for event in events:
            if event.WhichOneof("kind") == "start":
                paths = self._request[CALLER_PATHS]
                self._headers |= served_headers(event.start.served, paths)
            elif _is_content(event):
                return True
        return False

    async def _begin(self) -> None:
        self.has_begun = True
        self._timer.stop()
        self._timer = IdleTimer(self._keepalive_s, self._on_silence)
        self._response = _Stream(headers=self._headers)
        await self._response.prepare(self._request)

    def _all_held(self) -> bytes:
        held = b"".join(self._held)
        self._held.clear()
        return held

    def _on_silence(self) -> None:
        # A caller who has something to read needs no sign.
        if self._sign is None and not self._connection.writing_paused:
            self._sign = asyncio.create_task(self._give_sign())

    async def _give_sign(self) -> None:
        try:
            if not self.has_begun:
                await self._begin()
            await self._response.write(self._all_held() or self._encoder.keepalive())
        except ConnectionError:
            pass  # a caller who is gone needs none; the request's own task learns of it too
        finally:
            self._sign = None


def _is_content(event: Event) -> bool:
    kind = event.WhichOneof("kind")
    if kind == "block_start":
        # Providers announce a block of text before they have any.
        return event.block_start.WhichOneof("kind") not in ("text", "thinking") or bool(
            event.block_start.text or event.block_start.thinking.text
        )
    return kind not in ("usage", "unknown")
