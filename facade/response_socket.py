"""A WebSocket on which responses are requested: OpenAI's WebSocket mode.

Requests of one `stream_id` are served one after another, and those without one likewise; different
streams at the same time. Limits apply to each request as over HTTP. A client that leaves cancels
its requests.

When the socket has been open for `limits.max_socket_s`, and when the gateway stops, no further
request is served, and the socket is closed after the current ones.
"""

import asyncio
import logging
import math
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Final

from facade.context import Context
from facade.dialects.responses.socket_events import (
    SocketRequest,
    UnreadError,
    error_message,
    failure_message,
    read_message,
    steer_failed,
)
from facade.http.responses import Respond, WholeResponse
from facade.http.websocket import SocketClosedError, SocketMessage, WebSocket
from facade.http.websocket_frames import CloseCode
from facade.http_errors import HttpExchangeError
from facade.request_context import stopping
from facade.socket_exchange import (
    MessageConnection,
    RecentResponses,
    SocketExchange,
    SocketHandshake,
)
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, internal
from services.common.process.byte_budget import Charge
from services.common.process.offload import offload_if

log = logging.getLogger(__name__)

# Requests of a socket that wait for others, and streams with a request that is served.
MOST_WAITING: Final = 32
MOST_STREAMS: Final = 16
# Bytes of a message that takes some milliseconds to read.
_LARGE: Final = 1 << 20
_RETRY_AFTER_S: Final = 1


class ResponseSocket:
    """Serves the requests of one socket.

    Args:
        context: the dependencies of the handlers.
        socket: the socket.
        handshake: the request that opened it.
        respond: returns the response to a request.
        recent: the responses that the socket keeps.
    """

    def __init__(
        self,
        context: Context,
        socket: WebSocket,
        handshake: SocketHandshake,
        respond: Respond,
        recent: RecentResponses,
    ) -> None:
        self._context = context
        self._socket = socket
        self._handshake = handshake
        self._respond = respond
        self._recent = recent
        self._loop = asyncio.get_running_loop()
        self._ends_at = self._loop.time() + context.settings.limits.max_socket_s
        # By stream: the request that is served, and those that wait for it.
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting: dict[str, deque[tuple[SocketRequest, Charge]]] = {}

    async def serve(self) -> None:
        """Serve the socket until it is closed."""
        try:
            while (ending := self._ending()) is None or self._tasks:
                until = self._ends_at if ending is None else math.inf
                message = await self._socket.receive(until)
                if message is not None:
                    await self._accept(message, ending)
            await self._end(ending)
        except (SocketClosedError, ConnectionError):
            pass
        except GatewayError as error:
            await self._reject(error)
        finally:
            await self._cancel()

    def _ending(self) -> GatewayError | None:
        """Return the error of requests that are not served any more; None while they are."""
        if self._socket.is_stopping:
            return stopping()
        if self._loop.time() < self._ends_at:
            return None
        seconds = self._context.settings.limits.max_socket_s
        return HttpExchangeError(
            400,
            "websocket_connection_limit_reached",
            f"the WebSocket has been open for {seconds:g} seconds, the maximum; open another one",
            limit="limits.max_socket_s",
        )

    async def _accept(self, message: SocketMessage, ending: GatewayError | None) -> None:
        """Begin to serve the request of a message, or let it wait; answer one that is invalid."""
        is_large = len(message.data) > _LARGE
        try:
            request = await offload_if(is_large, read_message, message.data)
            if failure := ending or self._too_many(request.stream_id or ""):
                raise UnreadError(failure, request.stream_id)
        except UnreadError as error:
            message.charge.release()
            if error.steered is None:
                self._fail(error.failure, error.stream_id)
            else:
                self._socket.send(steer_failed(error.steered))
            return
        stream_id = request.stream_id or ""
        self._waiting.setdefault(stream_id, deque()).append((request, message.charge))
        if stream_id not in self._tasks:
            self._begin(stream_id)

    def _too_many(self, stream_id: str) -> GatewayError | None:
        """Return the error of a request for which there is no room."""
        if stream_id not in self._tasks:
            if len(self._tasks) < MOST_STREAMS:
                return None
            problem = f"{MOST_STREAMS} streams of this WebSocket have a request in progress"
        else:
            if sum(map(len, self._waiting.values())) < MOST_WAITING:
                return None
            problem = f"{MOST_WAITING} requests of this WebSocket wait for others"
        return GatewayError(
            errors_pb2.REASON_RATE_LIMITED,
            f"{problem}, the maximum; try again when one has finished",
            retry_after_s=_RETRY_AFTER_S,
        )

    def _begin(self, stream_id: str) -> None:
        """Serve the next request of a stream, in a task of its own."""
        queue = self._waiting[stream_id]
        request, charge = queue.popleft()
        if not queue:
            del self._waiting[stream_id]
        task = self._loop.create_task(self._serve(request, charge))
        self._tasks[stream_id] = task
        task.add_done_callback(partial(self._on_done, stream_id))

    def _on_done(self, stream_id: str, task: asyncio.Task[None]) -> None:
        del self._tasks[stream_id]
        if not task.cancelled() and (error := task.exception()):
            log.error("unforeseen failure", exc_info=error)
        ending = self._ending()
        if stream_id in self._waiting:
            if ending is None:
                self._begin(stream_id)
                return
            with suppress(ConnectionError):
                for request, charge in self._waiting.pop(stream_id):
                    charge.release()
                    self._fail(ending, request.stream_id)
        if self._context.requests.is_draining:
            self._socket.stop()
        elif ending is not None:
            self._socket.wake()

    async def _serve(self, request: SocketRequest, charge: Charge) -> None:
        """Serve a request, and send its response."""
        connection = MessageConnection(self._socket, request.stream_id)
        exchange = SocketExchange(self._context, connection, self._handshake, request, self._recent)
        if charge.size:
            exchange.body_charge = charge
        try:
            response = await self._respond(exchange)
            if isinstance(response, WholeResponse):
                headers = {**response.headers, "x-request-id": exchange.request_id}
                self._socket.send(
                    error_message(response.status, response.body, headers, request.stream_id)
                )
            if connection.writing_paused:
                await connection.drain()
        except ConnectionError:
            with suppress(ConnectionError):  # the client has left, unless a stream broke off
                self._fail(internal(), request.stream_id)
        finally:
            connection.release()
            charge.release()

    def _fail(self, error: GatewayError, stream_id: str | None) -> None:
        if error.limit:
            self._context.metrics.limits_reached.labels(error.limit).inc()
        self._socket.send(failure_message(error, stream_id))

    async def _end(self, ending: GatewayError) -> None:
        """Close the socket, as no request is served any more."""
        if self._socket.is_stopping:
            await self._socket.close(CloseCode.RESTARTING, ending.message)
            return
        self._fail(ending, None)
        await self._socket.close(CloseCode.GOING_AWAY, ending.message)

    async def _reject(self, error: GatewayError) -> None:
        """Close the socket after a message for which there is no room."""
        with suppress(ConnectionError):
            self._fail(error, None)
            is_too_large = error.reason == errors_pb2.REASON_TOO_LARGE
            code = CloseCode.TOO_LARGE if is_too_large else CloseCode.TRY_AGAIN_LATER
            await self._socket.close(code, error.message)

    async def _cancel(self) -> None:
        """Cancel all requests, as the client has left."""
        for queue in self._waiting.values():
            for _, charge in queue:
                charge.release()
        self._waiting.clear()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._recent.release()
