"""One HTTP connection of a client.

`HttpConnection` reads requests (`PlainReader`, `BoundedParser`), serves them one after another,
each in a task of its own, and writes their responses. It limits the data that a client makes it
buffer.

Data that arrives while a plain request is served is held until the response is written, as only
then it is known whether the next request is plain too. Data behind a request that waits is held as
well, as aiohttp's parser would buffer any amount of it.
"""

import asyncio
import contextvars
import logging
import traceback
from collections import deque
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, Final, cast

from aiohttp.http import HttpRequestParser
from aiohttp.streams import StreamReader

from facade.context import Context
from facade.http import head_errors
from facade.http.connections import Connections
from facade.http.exchange import BrokenBodyError, Exchange, exchange_of
from facade.http.head_errors import BadHeadError
from facade.http.parser import BoundedParser, Message, UnfinishedHeads
from facade.http.plain import PlainEndpoint, PlainReader
from facade.http.refused import RefusedConnection
from facade.http.responses import Respond, SwitchedResponse, WholeResponse
from facade.http.websocket import WebSocket
from facade.http.writable import WritableConnection
from services.common import errors
from services.common.errors import GatewayError

log = logging.getLogger(__name__)

# Bytes of a body, or of requests that follow a plain one, that are read ahead.
_READ_AHEAD: Final = 256 << 10
# Seconds that a client has to read a response that is sent before the end of its request, after the
# last data that it sent; and in total.
_LINGER_S: Final = 2.0
_MAX_LINGER_S: Final = 10.0


class HttpConnection(WritableConnection):
    """Serves the requests of one connection."""

    __slots__ = (
        "_held",
        "_held_bytes",
        "_idle_since",
        "_input",
        "_is_authenticated",
        "_is_closed",
        "_is_plain",
        "_refused",
        "_respond",
        "_socket",
        "_stream",
        "_task",
        "_variables",
        "_waiting",
    )

    def __init__(
        self,
        connections: Connections,
        heads: UnfinishedHeads,
        context: Context,
        respond: Respond,
        plain: Mapping[bytes, PlainEndpoint],
    ) -> None:
        """Initialize a connection without a transport.

        Args:
            connections: all connections of the listener.
            heads: the unfinished heads of the listener.
            context: settings, metrics and the access log.
            respond: returns the response to a request that is not plain, even for failures; raises
                if the client has left.
            plain: endpoints that serve plain requests, by path.
        """
        loop = asyncio.get_running_loop()
        limits = connections.limits
        super().__init__(connections, context)
        parser = HttpRequestParser(
            self,
            loop,
            _READ_AHEAD,
            max_line_size=limits.max_head_bytes,
            max_field_size=limits.max_head_bytes,
            max_headers=limits.max_header_fields,
            payload_exception=BrokenBodyError,
            auto_decompress=False,
            max_msg_queue_size=1,
        )
        reader = PlainReader(plain, context, self, self, _READ_AHEAD)
        self._input = BoundedParser(
            parser, reader, limits, heads, loop.time, self._resume_parsing, self._stop_reading
        )
        self._parser = cast(Any, self._input)  # paused by the base class
        self._respond = respond
        self._is_authenticated = False
        # Serves the current request.
        self._task: asyncio.Task[None] | None = None
        self._is_plain = False
        # Requests that aiohttp has parsed while another is served: at most one, and an error.
        self._waiting: deque[Message | BadHeadError] = deque()
        # Data that follows a plain request which is being served, or one that waits.
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        # Context variables of a task begin with these, not with those of the request before it.
        self._variables = contextvars.copy_context()
        self._is_closed = False
        self._idle_since = 0.0
        # Set once the connection is refused or evicted.
        self._refused: RefusedConnection | None = None
        # Of a connection that has become a WebSocket: the socket, and what the client sends.
        self._socket: WebSocket | None = None
        self._stream: StreamReader | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request is being served."""
        return self._input.answered == self._input.messages

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task that serves the current request."""
        return self._task

    @property
    def _is_ahead(self) -> bool:
        """Whether a complete request waits for the one before it, if any waits."""
        request = self._waiting[-1]
        return not isinstance(request, BadHeadError) and request[1].is_eof()

    def authenticated(self) -> None:
        """Count the connection as authenticated, after a request with a valid API key."""
        if not self._is_authenticated:
            self._is_authenticated = True
            self._connections.authenticated(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to serve the connection, or refuse it if there are too many."""
        if not self._connections.admit(self):
            self._begin_refusal(cast(asyncio.Transport, transport), is_new=True)
            return
        # The time limit of the first head begins now; it is shorter than that of an idle
        # connection.
        self._input.began = self._idle_since = self._loop.time()
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the connection's resources."""
        self._connections.remove(self)
        if self._refused is not None:
            self._connections.remove_refused(self._refused)
            self._refused = None
        self._input.close()
        self.force_close()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Serve the requests in the data, or the parts of them."""
        if self._stream is not None:
            self._stream.feed_data(data)
            return
        if self._is_plain or (self._waiting and self._is_ahead):
            self._hold(data)
            return
        if self._is_closed:
            if data and self._refused is not None:
                self._refused.receive(data)
            return
        if data:
            plain = self._input.read_plain(data)
            if plain is not None:
                endpoint, exchange = plain
                self._is_plain = True
                self._begin(self._serve(endpoint.respond, exchange))
                return
        try:
            self._waiting.extend(self._input.feed_data(data))
        except BadHeadError as error:
            self._waiting.append(error)
        if self._waiting and self._task is None:
            self._serve_next()

    def force_close(self) -> None:
        """Close the connection at once, even while a request is being served."""
        self._is_closed = True
        if self.transport is not None:
            self.transport.close()
            self.transport = None
        if self._task is not None:
            self._task.cancel()

    def end(self) -> None:
        """Close the connection, or a socket once its requests have been answered."""
        if self._socket is None:
            self.force_close()
        else:
            self._socket.stop()

    def check(self, now: float) -> float:
        """Close the connection if it is idle, or if a head or a reader takes too long.

        Returns:
            The seconds for which the client has read none of the data that is buffered for it.
        """
        limits = self._connections.limits
        began = self._input.began
        if began is None:
            is_idle = self._task is None and not self._input.discards
            if is_idle and now - self._idle_since > limits.idle_connection_s:
                self.force_close()
        elif now - began > limits.head_timeout_s and self.is_idle:
            if self._refuse(head_errors.head_timed_out(limits.head_timeout_s)):
                self._end_writing()
                self._loop.call_later(_LINGER_S, self.force_close)
            else:
                self.force_close()
        return self.check_reader(now)

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

    def _begin(self, serving: Coroutine[Any, Any, None]) -> None:
        """Serve a request in a task of its own."""
        self._task = self._loop.create_task(serving, context=self._variables.copy())

    def _serve_next(self) -> None:
        """Serve the request that waits longest."""
        request = self._waiting.popleft()
        if isinstance(request, BadHeadError):
            self._begin(self._reject(request))
        else:
            exchange = exchange_of(*request, self._context, self)
            self._begin(self._serve(self._respond, exchange))
        self._input.message_consumed()

    async def _serve(self, respond: Respond, exchange: Exchange) -> None:
        """Serve a request, then begin with the next one, or close the connection."""
        is_open = False
        try:
            try:
                response = await respond(exchange)
                # Most requests have arrived with their bodies, and need no reader.
                is_received = exchange.content is None or exchange.is_received
                if isinstance(response, WholeResponse):
                    if not is_received:
                        exchange.keep_alive = False
                    self.write(response.encode(exchange))
                    if self.writing_paused:
                        await self.drain()
                elif isinstance(response, SwitchedResponse):
                    await self._switch(response, exchange)
                    exchange.keep_alive = False
            except ConnectionError:
                raise
            except Exception as error:
                _log_exception(error)
                if exchange.has_begun:
                    raise ConnectionResetError("the response has begun") from None
                exchange.keep_alive = False
                is_received = exchange.is_received
                self.write(head_errors.refuse(self._context, errors.internal(), exchange.path))
            if self._finish(is_received=is_received):
                await self._linger()
            else:
                is_open = exchange.keep_alive and not self._is_closed
        except ConnectionError:
            pass  # the client has left, or the response cannot be completed
        finally:
            self._end(is_open=is_open)

    async def _switch(self, response: SwitchedResponse, exchange: Exchange) -> None:
        """Serve the connection as a WebSocket until that is closed."""
        self._upgraded = True  # the reader of HTTP is not paused any more
        self._stream = StreamReader(self, _READ_AHEAD, loop=self._loop)
        limits = self._context.settings.limits
        self._socket = socket = WebSocket(self, self._stream, limits, exchange.charge)
        self.write(response.encode(exchange))
        await response.serve(socket, self._respond)

    async def _reject(self, error: BadHeadError) -> None:
        """Respond to a rejected head, and close the connection."""
        try:
            self.write(head_errors.refuse(self._context, error.failure, error.path))
            self._finish(is_received=True)
            await self._linger()
        except ConnectionError:
            pass  # the client has left
        finally:
            self._end(is_open=False)

    def _end(self, *, is_open: bool) -> None:
        """End the current task: close the connection, or process the data that follows."""
        self._task = None
        self._is_plain = False
        if not is_open:
            self.release_charge()
            self.force_close()
            return
        self._idle_since = self._loop.time()
        if self._waiting:
            self._serve_next()
        if self._held:
            self._process_held()

    def _hold(self, data: bytes) -> None:
        if self._is_closed:
            return
        data = self._input.read_plain_body(data)
        if data:
            self._held.append(data)
            self._held_bytes += len(data)
            if self._held_bytes > _READ_AHEAD and not self._buffer_paused:
                self._pause_reading_for_buffer()

    def _process_held(self) -> None:
        """Process the data that has been held, up to the end of another request."""
        held, self._held = self._held, deque()
        while held and not (
            (self._waiting and self._is_ahead) or (self._is_plain and self._input.has_plain_body)
        ):
            data = held.popleft()
            self._held_bytes -= len(data)
            self.data_received(data)
        # Data that has been held again precedes the rest.
        held.extendleft(reversed(self._held))
        self._held = held
        if self._buffer_paused and not held:
            self._resume_reading_for_buffer()

    def _finish(self, *, is_received: bool) -> bool:
        """Finish a request; return whether the connection must linger."""
        if self._charge is not None:
            self.release_charge()
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
        self._buffer_paused = False
        self.resume_reading(resume_parser=False)
        if self.transport is not None and self.transport.can_write_eof():
            self.transport.write_eof()

    def _begin_refusal(self, transport: asyncio.Transport, *, is_new: bool) -> None:
        """Serve no request any more; answer one that has begun, or that arrives in a moment."""
        self._is_closed = True
        refusal = partial(head_errors.refuse, self._context, head_errors.too_many_connections())
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
            self.transport.write(head_errors.refuse(self._context, failure, self._input.path))
            return True
        if failure.limit:
            self._context.metrics.limits_reached.labels(failure.limit).inc()
        return False


def _log_exception(error: Exception) -> None:
    """Log where an exception was raised, not its text, which may quote the request."""
    trace = "".join(traceback.format_tb(error.__traceback__))
    log.error("unforeseen failure", extra={"kind": type(error).__name__, "trace": trace})
