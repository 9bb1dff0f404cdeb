"""How an answer that is still coming reaches the caller, as server-sent events.

Headers wait for the first content, so that a failure before it is a true HTTP
status; a caller never waits longer than `hold_headers_s` for them, nor longer than
`keepalive_s` for a sign of life afterwards. One message from the service becomes
one write.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol

import grpc
from aiohttp import web

from facade.context import CONTEXT
from facade.middlewares import told
from facade.served import served_headers
from gateway.inference.v1.inference_pb2 import Event, StreamGenerateResponse
from services.common.errors import GatewayError

_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


class Encoder(Protocol):
    """Turns events into the bytes of a dialect's stream."""

    def encode(self, events: Iterable[Event]) -> bytes:
        """Give the bytes of a batch of events, possibly none."""
        ...

    def finish(self) -> bytes:
        """Give what ends a whole answer."""
        ...

    def keepalive(self) -> bytes:
        """Give what a client reads past."""
        ...

    def error(self, error: GatewayError) -> bytes:
        """Give what ends an answer that broke off."""
        ...


async def relay(request: web.Request, call: Any, encoder: Encoder) -> web.StreamResponse:
    """Answer `request` with the events of `call`, a StreamGenerate that has begun.

    Raises:
        grpc.aio.AioRpcError: the call failed before anything was sent.
    """
    limits = request.app[CONTEXT].settings.limits
    opening = _Opening()
    reading: asyncio.Future[Any] | None = None
    try:
        end = asyncio.get_running_loop().time() + limits.hold_headers_s
        while not opening.is_due:
            reading = asyncio.ensure_future(call.read())
            done, _ = await asyncio.wait({reading}, timeout=end - asyncio.get_running_loop().time())
            if not done:
                break
            opening.add(reading.result(), encoder)
            reading = None
        response = web.StreamResponse(headers={**_HEADERS, **opening.headers})
        await response.prepare(request)
        writer = _Writer(response, encoder, limits.keepalive_s)
        async with writer.kept_alive():
            await writer.write(bytes(opening.held) or encoder.keepalive())
            try:
                if not opening.ended:
                    async for message in _messages(call, reading):
                        await writer.write(encoder.encode(message.events))
                await writer.write(encoder.finish())
            except grpc.aio.AioRpcError as error:
                await writer.write(encoder.error(told(error, request)))
                response.force_close()
        await response.write_eof()
        return response
    finally:
        call.cancel()
        if reading is not None:
            reading.cancel()


async def _messages(
    call: Any, reading: asyncio.Future[Any] | None
) -> AsyncIterator[StreamGenerateResponse]:
    """Give the messages of a call, the one being read already first."""
    message = await (call.read() if reading is None else reading)
    while message is not grpc.aio.EOF:
        yield message
        message = await call.read()


class _Opening:
    """What came before the headers went out."""

    def __init__(self) -> None:
        self.held = bytearray()
        self.headers: dict[str, str] = {}
        self.is_due = False
        self.ended = False

    def add(self, message: Any, encoder: Encoder) -> None:
        """Take a message in; content, or the end, makes the headers due."""
        if message is grpc.aio.EOF:
            self.is_due = self.ended = True
            return
        for event in message.events:
            if event.WhichOneof("kind") == "start":
                self.headers = served_headers(event.start.served)
            elif _is_content(event):
                self.is_due = True
        self.held += encoder.encode(message.events)


def _is_content(event: Event) -> bool:
    kind = event.WhichOneof("kind")
    if kind == "block_start":
        # Providers announce a block of text before they have any.
        return event.block_start.WhichOneof("kind") not in ("text", "thinking") or bool(
            event.block_start.text or event.block_start.thinking.text
        )
    return kind != "usage"


class _Writer:
    """Writes to a caller, and gives a sign of life where nothing was written for a while."""

    def __init__(self, response: web.StreamResponse, encoder: Encoder, keepalive_s: float) -> None:
        self._response = response
        self._encoder = encoder
        self._keepalive_s = keepalive_s
        self._clock = asyncio.get_running_loop().time
        self._last = self._clock()

    async def write(self, data: bytes) -> None:
        """Write what there is, in one go."""
        if data:
            self._last = self._clock()
            await self._response.write(data)

    @contextlib.asynccontextmanager
    async def kept_alive(self) -> AsyncIterator[None]:
        """Keep the caller's connection alive for the time of the block."""
        task = asyncio.create_task(self._keep_alive())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await task

    async def _keep_alive(self) -> None:
        while True:
            silence = self._clock() - self._last
            if silence >= self._keepalive_s:
                await self.write(self._encoder.keepalive())
                silence = 0
            await asyncio.sleep(self._keepalive_s - silence)
