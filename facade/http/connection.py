"""One HTTP connection of a client.

`Connection` extends aiohttp's `RequestHandler`. It limits the data that a client makes it buffer,
and responds with JSON where aiohttp would write plain text. It serves plain requests (`plain`)
without aiohttp: one task creates no `web.Request` and writes a whole response at once. Data that
arrives while a plain request is served is held until the response is written, so that aiohttp never
serves a request at the same time.

Private attributes of aiohttp are set here: the parser, to wrap it in a `BoundedParser`; the number
of requests that wait on a connection, a constant in aiohttp; and the time at which an idle
connection closes.
"""

import asyncio
import logging
import traceback
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

from aiohttp import ClientConnectionResetError, web
from aiohttp.http import HttpRequestParser
from aiohttp.web import RequestPayloadError

from facade.context import Context
from facade.http import refusals
from facade.http.connections import Connections
from facade.http.exchange import Exchange
from facade.http.parser import BoundedParser, UnfinishedHeads
from facade.http.plain import PlainEndpoint, PlainReader
from facade.http.raw_response import RawResponse
from facade.http.refusals import BadHeadError
from facade.http.refused import RefusedConnection
from facade.http.responses import JsonResponse
from services.common import errors, logs
from services.common.byte_budget import Charge
from services.common.errors import GatewayError
from services.common.ids import new_request_id

log = logging.getLogger(__name__)

# Requests of a connection that may wait for the one before them, each with its head in memory.
# One would pause reading after every request.
_MAX_WAITING: Final = 2
# Bytes of a body that are read ahead.
_READ_AHEAD: Final = 256 << 10
# Bytes of responses that are buffered when writing pauses, and when it resumes.
_HIGH: Final = 32 << 10
_LOW: Final = 16 << 10
# Seconds that a client has to read a response that is sent before the end of its request, after the
# last data that it sent; and in total.
_LINGER_S: Final = 2.0
_MAX_LINGER_S: Final = 10.0


class Connection(web.RequestHandler):
    """Serves the requests of one connection."""

    __slots__ = (
        "_charge",
        "_connections",
        "_context",
        "_held",
        "_held_bytes",
        "_input",
        "_is_authenticated",
        "_open_transport",
        "_plain",
        "_progress_at",
        "_refused",
        "_unread",
    )

    def __init__(
        self,
        server: web.Server,
        connections: Connections,
        heads: UnfinishedHeads,
        context: Context,
        plain: Mapping[bytes, PlainEndpoint],
    ) -> None:
        """Initialize a connection without a transport.

        Args:
            server: serves the requests that are not plain.
            connections: all connections of the process.
            heads: the unfinished heads of the process.
            context: settings, metrics and the access log.
            plain: endpoints that serve plain requests, by path.
        """
        loop = asyncio.get_running_loop()
        limits = connections.limits
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=limits.idle_connection_s,
            access_log=cast(logging.Logger, None),
            # The rest of a request that has been answered is dropped in `_linger`.
            lingering_time=0,
            auto_decompress=False,
        )
        parser = HttpRequestParser(
            self,
            loop,
            _READ_AHEAD,
            max_line_size=limits.max_head_bytes,
            max_field_size=limits.max_head_bytes,
            max_headers=limits.max_header_fields,
            payload_exception=RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=1,
        )
        reader = PlainReader(plain, context, self, self, _READ_AHEAD)
        self._input = BoundedParser(
            parser, reader, limits, heads, loop.time, self._resume_parsing, self._stop_reading
        )
        self._parser = cast(Any, self._input)
        self._max_msg_queue_size = _MAX_WAITING
        self._msg_queue_resume_size = _MAX_WAITING // 2
        self._connections = connections
        self._context = context
        self._is_authenticated = False
        # Serves a plain request; data that follows the request is held meanwhile.
        self._plain: asyncio.Task[None] | None = None
        self._held: list[bytes] = []
        self._held_bytes = 0
        # `transport` is None as soon as closing begins, even if buffered data is still being sent.
        self._open_transport: asyncio.Transport | None = None
        self._unread = 0
        self._progress_at = 0.0
        self._charge: Charge | None = None  # of the current response
        # Set once the connection is refused or evicted.
        self._refused: RefusedConnection | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request is being served."""
        return self._input.answered == self._input.messages

    def authenticated(self) -> None:
        """Count the connection as authenticated, after a request with a valid API key."""
        if not self._is_authenticated:
            self._is_authenticated = True
            self._connections.authenticated(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to serve the connection, or refuse it if there are too many."""
        opened = cast(asyncio.Transport, transport)
        if not self._connections.admit(self):
            self._begin_refusal(opened, is_new=True)
            return
        self._open_transport = opened
        # The time limit of the first head begins now; it is shorter than that of an idle
        # connection.
        self._input.began = self._progress_at = self._loop.time()
        opened.set_write_buffer_limits(high=_HIGH, low=_LOW)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the connection's resources."""
        if self._open_transport is not None:
            self._open_transport = None
            self._connections.remove(self)
            if self.writing_paused:
                self._connections.writing_resumed()
        if self._refused is not None:
            self._connections.remove_refused(self._refused)
            self._refused = None
        self._input.close()
        self._release_charge()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Serve a plain request, or pass the data to aiohttp."""
        if self._plain is not None:
            self._hold(data)
            return
        if data and not (self._force_close or self._close):
            request = self._input.read_plain(data)
            if request is not None:
                self._plain = self._loop.create_task(self._serve(*request))
                return
        elif self._refused is not None:
            self._refused.receive(data)
            return
        super().data_received(data)

    def write(self, data: bytes) -> None:
        """Write framed bytes of a response.

        Raises:
            ConnectionError: the client has left.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ClientConnectionResetError("the client has left")
        transport.write(data)

    async def drain(self) -> None:
        """Wait until the client has read enough of the written data.

        Raises:
            ConnectionError: the client has left.
        """
        if self.transport is not None and self.writing_paused:
            await self._drain_helper()

    def hold(self, charge: Charge) -> None:
        """Release a charge once the current response has been sent, or the connection is lost."""
        self._charge = charge

    def holds(self, charge: Charge) -> bool:
        """Return whether a charge is still held."""
        return self._charge is charge

    def _release_charge(self) -> None:
        if self._charge is not None:
            self._charge.release()
            self._charge = None

    def force_close(self) -> None:
        """Close the connection at once, even while a request is being served."""
        super().force_close()
        if self._plain is not None:
            self._plain.cancel()

    def pause_writing(self) -> None:
        """Pause the response until the client has read more."""
        self._connections.writing_paused()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Resume the response."""
        self._progress_at = self._loop.time()
        self._connections.writing_resumed()
        super().resume_writing()

    def check(self, now: float) -> float:
        """Close the connection if a head or a reader takes too long.

        Returns:
            The seconds for which the client has read none of the data that is buffered for it.
        """
        limits = self._connections.limits
        began = self._input.began
        if began is not None and now - began > limits.head_timeout_s and self.is_idle:
            if self._refuse(refusals.head_timed_out(limits.head_timeout_s)):
                self._end_writing()
                self._loop.call_later(_LINGER_S, self.force_close)
            else:
                self.force_close()
        if self._open_transport is None:
            return 0.0
        waiting = self._open_transport.get_write_buffer_size()
        if waiting == 0 or waiting < self._unread:
            self._progress_at = now
        self._unread = waiting
        stalled_s = now - self._progress_at if waiting else 0.0
        if stalled_s > limits.stalled_reader_s:
            self.abort("limits.stalled_reader_s")
        return stalled_s

    def abort(self, limit: str) -> None:
        """Abort the connection of a client that does not read, and count the limit."""
        self._count(limit)
        if self._open_transport is not None:
            self._open_transport.abort()

    def evict(self) -> None:
        """Close the connection to make room for another one.

        A request that has begun is answered, and a first one that may not have been read yet. A
        later one crosses the end of its connection, and clients send it again.
        """
        transport = self._open_transport
        is_awaited = self._input.has_begun or not self._input.messages
        if transport is not None and transport.get_write_buffer_size():
            transport.abort()
        elif transport is not None and self.is_idle and is_awaited and not self._input.discards:
            self._begin_refusal(transport, is_new=False)
        else:
            self.force_close()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write the rest of a response; linger if its request has not been received completely."""
        try:
            finished = await super().finish_response(request, resp, start_time)
        finally:
            self._release_charge()
            if isinstance(resp, web.Response):
                # The frame that serves the connection refers to it until the next request.
                resp.body = None
        if self._finish(is_received=request.content.is_eof()):
            await self._linger()
        return finished

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the response to a request that could not be parsed, or that failed unexpectedly.

        Raises:
            ConnectionError: the client has left, or has part of a response already.
        """
        if isinstance(exc, ConnectionError):
            raise exc
        if isinstance(exc, BadHeadError):
            failure, path = exc.failure, exc.path
        else:
            self.log_exception(exc_info=exc)
            failure, path = errors.internal(), request.path
        if request.writer.output_size > 0:
            raise ConnectionResetError("the response has begun")
        response = self._response(failure, path)
        return RawResponse(failure.http_status, lambda: response)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log where an exception was raised, not its text, which may quote the request."""
        error = kw.get("exc_info")
        trace = traceback.format_tb(error.__traceback__) if isinstance(error, Exception) else []
        kind = type(error).__name__
        log.error("unforeseen failure", extra={"kind": kind, "trace": "".join(trace)})

    async def _serve(self, endpoint: PlainEndpoint, exchange: Exchange) -> None:
        """Serve a plain request, then process the data that was held meanwhile."""
        is_open = False
        try:
            try:
                response = await endpoint.respond(exchange)
                if isinstance(response, JsonResponse):
                    self.write(response.encode(exchange))
                    if self.writing_paused:
                        await self.drain()
            except ConnectionError:
                raise
            except Exception as error:
                self.log_exception(exc_info=error)
                if exchange.has_begun:
                    raise ConnectionResetError("the response has begun") from None
                exchange.keep_alive = False
                self.write(self._response(errors.internal(), endpoint.path))
            if self._finish(is_received=exchange.is_received):
                await self._linger()
            else:
                is_open = exchange.keep_alive and not self._close
        except ConnectionError:
            pass  # the client has left, or the response cannot be completed
        finally:
            self._plain = None
            if not is_open:
                self.force_close()
        if is_open:
            self._await_next()

    def _hold(self, data: bytes) -> None:
        if self._force_close or self._close:
            return
        data = self._input.read_plain_body(data)
        if data:
            self._held.append(data)
            self._held_bytes += len(data)
            if self._held_bytes > _READ_AHEAD and not self._buffer_paused:
                self._pause_reading_for_buffer()

    def _await_next(self) -> None:
        """Set the time at which the idle connection closes, and process held data."""
        closes_at = self._loop.time() + self._keepalive_timeout
        self._next_keepalive_close_time = closes_at
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(closes_at, self._process_keepalive)
        if self._held:
            held, self._held, self._held_bytes = self._held, [], 0
            for data in held:
                self.data_received(data)
            if self._buffer_paused and not self._held:
                self._resume_reading_if_drained()

    def _process_keepalive(self) -> None:
        if self._plain is None:
            super()._process_keepalive()
        else:
            self._keepalive_handle = None

    def _finish(self, *, is_received: bool) -> bool:
        """Finish a request; return whether the connection must linger."""
        read = self._input
        read.answered += 1
        if read.began is not None:
            read.began = self._loop.time()
        # No request is served after one that the parser rejected.
        return not is_received or (read.discards and self.is_idle)

    async def _linger(self) -> None:
        """Drop the data that the client still sends, so that it can read the response."""
        self._end_writing()
        ends_at = self._loop.time() + _MAX_LINGER_S
        dropped = -1
        while dropped < self._input.dropped and self._loop.time() < ends_at:
            dropped = self._input.dropped
            await asyncio.sleep(_LINGER_S)

    def _end_writing(self) -> None:
        """End the responses of the connection; drop all data that follows.

        Closing a connection with unread data resets it, and the last response may be lost. So the
        connection stays open for `_LINGER_S` after this, and reading resumes if a body that nobody
        reads has paused it.
        """
        self._input.discard()
        self.keep_alive(False)
        self._buffer_paused = False
        self.resume_reading(resume_parser=False)
        if self.transport is not None and self.transport.can_write_eof():
            self.transport.write_eof()

    def _begin_refusal(self, transport: asyncio.Transport, *, is_new: bool) -> None:
        """Serve no request any more; answer one that has begun, or that arrives in a moment."""
        self._force_close = True
        refusal = partial(self._response, refusals.too_many_connections())
        self._refused = refused = RefusedConnection(transport, refusal, is_new=is_new)
        if self._input.has_begun:
            refused.answer(self._input.path)
            self._input.discard()
        self._connections.keep_refused(refused)

    def _resume_parsing(self) -> None:
        self.data_received(b"")

    def _stop_reading(self) -> None:
        if self.transport is not None:
            self.transport.pause_reading()

    def _refuse(self, failure: GatewayError) -> bool:
        """Respond to an unfinished head; return False if no byte of one has been received."""
        if self._input.has_begun and self.transport is not None:
            self.transport.write(self._response(failure, self._input.path))
            return True
        if failure.limit:
            self._count(failure.limit)
        return False

    def _response(self, failure: GatewayError, path: str) -> bytes:
        """Return the response for a failure, counted and logged."""
        request_id = new_request_id()
        token = logs.request_id.set(request_id)
        self._context.access_log.answered(
            "", "unknown", failure.http_status, 0.0, lambda: {"error": failure.code}
        )
        logs.request_id.reset(token)
        self._context.metrics.answered("unknown", failure.http_status, 0.0)
        if failure.limit:
            self._count(failure.limit)
        return refusals.response_to(failure, path, request_id, self._context.clock.now())

    def _count(self, limit: str) -> None:
        self._context.metrics.limits_reached.labels(limit).inc()
