"""The channel: calls over a link where a plain channel makes each a gRPC call."""

import asyncio
from collections.abc import Container
from contextvars import Context
from types import TracebackType
from typing import Any, Self

import grpc

from gateway.link.v1.link_pb2_grpc import LinkStub
from services.common.link.calls import Deserialize, Serialize
from services.common.link.connection import Connection
from services.common.link.exchange import Exchange
from services.common.link.methods import (
    StreamStreamMethod,
    StreamUnaryMethod,
    UnaryStreamMethod,
    UnaryUnaryMethod,
)

# Seconds between tries to open a link with a server that is there and refuses it.
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0


class LinkChannel(grpc.aio.Channel):
    """A `grpc.aio.Channel` whose calls share a link.

    The link is opened for the first call, and again for the first one after it broke.
    Calls that were made on a broken link end UNAVAILABLE.

    Attributes:
        max_message: bytes of a message, either way.
    """

    def __init__(
        self, plain: grpc.aio.Channel, *, max_message: int, apart: Container[str] = ()
    ) -> None:
        """Make a channel.

        Args:
            plain: reaches the server; it is closed with this one.
            max_message: bytes of a message, either way.
            apart: streaming methods whose calls are made on `plain` itself.
        """
        self.max_message = max_message
        self._apart = apart
        self._plain = plain
        self._open: Any = LinkStub(plain).Open
        self._connection: Connection | None = None
        # All that have not ended, also those that take no further calls.
        self._connections: set[Connection] = set()
        self._connecting: asyncio.Task[None] | None = None
        # Why the last try to connect failed, while another one is under way.
        self._failure: str | None = None
        self._waiting: dict[Exchange, None] = {}
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.close()

    def unary_unary(
        self,
        method: str,
        request_serializer: Serialize | None = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool | None = False,
    ) -> UnaryUnaryMethod:
        """Give what makes calls of one request and one response."""
        return UnaryUnaryMethod(self, method, request_serializer, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: Serialize | None = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool | None = False,
    ) -> grpc.aio.UnaryStreamMultiCallable[Any, Any]:
        """Give what makes calls of one request and any number of responses."""
        if method in self._apart:
            return self._plain.unary_stream(method, request_serializer, response_deserializer)
        return UnaryStreamMethod(self, method, request_serializer, response_deserializer)

    def stream_unary(
        self,
        method: str,
        request_serializer: Serialize | None = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool | None = False,
    ) -> grpc.aio.StreamUnaryMultiCallable[Any, Any]:
        """Give what makes calls of any number of requests and one response."""
        if method in self._apart:
            return self._plain.stream_unary(method, request_serializer, response_deserializer)
        return StreamUnaryMethod(self, method, request_serializer, response_deserializer)

    def stream_stream(
        self,
        method: str,
        request_serializer: Serialize | None = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool | None = False,
    ) -> grpc.aio.StreamStreamMultiCallable[Any, Any]:
        """Give what makes calls of any number of requests and responses."""
        if method in self._apart:
            return self._plain.stream_stream(method, request_serializer, response_deserializer)
        return StreamStreamMethod(self, method, request_serializer, response_deserializer)

    def begin(self, exchange: Exchange) -> None:
        """Let a call begin: now, or when there is a link.

        Raises:
            grpc.aio.UsageError: the channel is closed.
        """
        if self._connection is not None:
            exchange.start(self._connection)
        elif self._is_closed:
            raise grpc.aio.UsageError("Channel is closed.")
        elif self._failure is not None and not exchange.is_patient:
            exchange.lose(grpc.StatusCode.UNAVAILABLE, self._failure)
        else:
            self._waiting[exchange] = None
            exchange.wait_for_link(self._stop_waiting)
            if self._connecting is None:
                # In no caller's context: the link outlives the call that it is opened for.
                self._connecting = asyncio.create_task(self._connect(), context=Context())

    async def close(self, grace: float | None = None) -> None:
        """Take no more calls, give those in flight `grace` seconds, then cancel them."""
        self._is_closed = True
        connection, self._connection = self._connection, None
        if grace and (calls := self._calls()):
            await asyncio.wait(
                [asyncio.ensure_future(exchange.over()) for exchange in calls], timeout=grace
            )
        for exchange in self._calls():
            exchange.cancel("Channel closed!")
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        for connection in list(self._connections):
            await connection.close()
        await self._plain.close()

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Give the state of the connection to the server."""
        return self._plain.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the connection has another state."""
        await self._plain.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until the server is reached."""
        await self._plain.channel_ready()

    def _calls(self) -> list[Exchange]:
        on_links = [call for connection in self._connections for call in connection.calls()]
        return [*self._waiting, *on_links]

    def _stop_waiting(self, exchange: Exchange) -> None:
        self._waiting.pop(exchange, None)

    async def _connect(self) -> None:
        """Open a link, as long as a call waits that would rather wait than fail."""
        try:
            pause_s, is_patient = _FIRST_PAUSE_S, False
            while not await self._try_to_connect(is_patient):
                if not self._waiting:
                    break
                if is_patient:
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
                is_patient = True
        finally:
            self._failure = self._connecting = None

    async def _try_to_connect(self, is_patient: bool) -> bool:
        """Open a link, waiting for the server if `is_patient`; tell whether it opened."""
        stream = self._open(wait_for_ready=is_patient)
        try:
            await stream.initial_metadata()
        except asyncio.CancelledError:
            stream.cancel()
            raise
        if stream.done():
            self._failure = await stream.details()
            for exchange in list(self._waiting):
                if not exchange.is_patient:
                    exchange.lose(grpc.StatusCode.UNAVAILABLE, self._failure or "")
            return False
        self._connection = connection = Connection(stream, self._retire)
        self._connections.add(connection)
        connection.on_end(self._connections.discard)
        waiting, self._waiting = self._waiting, {}
        for exchange in waiting:
            exchange.start(connection)
        return True

    def _retire(self, connection: Connection) -> None:
        if self._connection is connection:
            self._connection = None
