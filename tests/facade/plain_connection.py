"""A connection on which endpoints serve requests, over a transport that keeps writes."""

import asyncio
from types import SimpleNamespace
from typing import Any, Self, cast

from prometheus_client import CollectorRegistry

from facade.context import Context
from facade.http.connection import HttpConnection, Respond
from facade.http.connections import Connections
from facade.http.exchange import Exchange
from facade.http.parser import UnfinishedHeads
from facade.http.plain import PlainEndpoint
from facade.http.responses import Response
from facade.reports import FacadeMetrics
from facade.request_context import RequestsInProgress
from services.common.clock import Clock
from services.common.process.timer_wheel import TimerWheel
from services.common.settings import Limits

NOW = 1_795_000_000.9
PATH = "/plain"


class Transport(asyncio.Transport):
    """Keeps each write with its time."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.writes: list[tuple[float, bytes]] = []
        self.closed = False
        self.reading_paused = False

    @property
    def written(self) -> list[bytes]:
        return [data for _, data in self.writes]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append((round(asyncio.get_running_loop().time(), 3), bytes(data)))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.reading_paused = True

    def resume_reading(self) -> None:
        self.reading_paused = False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class PlainServer:
    """Serves the requests of one connection.

    Args:
        respond: the endpoint for plain requests.
        limits: the limits of the connection.
        other: the endpoint for all other requests; by default there is none.

    Attributes:
        transport: of the connection.
        protocol: the connection.
    """

    protocol: HttpConnection

    def __init__(
        self, respond: Respond, limits: Limits | None = None, other: Respond | None = None
    ) -> None:
        self.transport = Transport()
        self._respond = respond
        self._other = other or _no_other
        self._limits = limits or Limits()
        self._has_left = False

    async def __aenter__(self) -> Self:
        metrics = FacadeMetrics(CollectorRegistry())
        context: Any = SimpleNamespace(
            settings=SimpleNamespace(limits=self._limits),
            metrics=metrics,
            access_log=SimpleNamespace(answered=lambda *_: None),
            timers=TimerWheel(),
            clock=Clock(now=lambda: NOW),
            requests=RequestsInProgress(1),
            cors=None,
        )
        self.protocol = HttpConnection(
            Connections(self._limits, metrics),
            UnfinishedHeads(),
            cast(Context, context),
            self._other,
            {PATH.encode(): PlainEndpoint(PATH, self._respond)},
        )
        self.protocol.connection_made(self.transport)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        await asyncio.sleep(100)

    def send(self) -> None:
        """Send a request."""
        lines = [f"POST {PATH} HTTP/1.1", "host: a", "content-length: 1", "", "x"]
        self.receive("\r\n".join(lines).encode())

    def receive(self, data: bytes) -> None:
        """Receive data of the client."""
        self.protocol.data_received(data)

    def leave(self) -> None:
        """Lose the connection, which happens once."""
        self.transport.closed = True
        if not self._has_left:
            self._has_left = True
            self.protocol.connection_lost(None)


async def _no_other(exchange: Exchange) -> Response:
    raise AssertionError("a plain request is not parsed by aiohttp")
