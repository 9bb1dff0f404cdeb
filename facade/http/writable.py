"""The writing half of a connection, which waits for clients that read slowly.

`transport` of the base class is None as soon as closing begins, even if buffered data is still
being sent; the limits on readers apply until the connection is lost.
"""

import asyncio
from typing import Final, cast

from aiohttp import ClientConnectionResetError
from aiohttp.base_protocol import BaseProtocol
from aiohttp.tcp_helpers import tcp_keepalive

from facade.context import Context
from facade.http.connections import Connections
from services.common.process.byte_budget import Charge

# Bytes of responses that are buffered when writing pauses, and when it resumes.
_HIGH: Final = 32 << 10
_LOW: Final = 16 << 10


class WritableConnection(BaseProtocol):
    """Writes the responses of one connection."""

    __slots__ = (
        "_charge",
        "_connections",
        "_context",
        "_open_transport",
        "_progress_at",
        "_unread",
    )

    def __init__(self, connections: Connections, context: Context) -> None:
        super().__init__(asyncio.get_running_loop())
        self._connections = connections
        self._context = context
        self._open_transport: asyncio.Transport | None = None
        self._unread = 0
        self._progress_at = 0.0
        self._charge: Charge | None = None  # of the current response

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Prepare the transport."""
        self._open_transport = opened = cast(asyncio.Transport, transport)
        self._progress_at = self._loop.time()
        opened.set_write_buffer_limits(high=_HIGH, low=_LOW)
        super().connection_made(transport)
        tcp_keepalive(opened)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release what is held for the response."""
        if self._open_transport is not None:
            self._open_transport = None
            if self.writing_paused:
                self._connections.writing_resumed()
        self.release_charge()
        super().connection_lost(exc)

    @property
    def peer_address(self) -> str:
        """The network address of the peer, or "" after it has left."""
        opened = self._open_transport
        peer = None if opened is None else opened.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) else ""

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

    def release_charge(self) -> None:
        """Release the charge of the current response."""
        if self._charge is not None:
            self._charge.release()
            self._charge = None

    def pause_writing(self) -> None:
        """Pause the response until the client has read more."""
        self._connections.writing_paused()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Resume the response."""
        self._progress_at = self._loop.time()
        self._connections.writing_resumed()
        super().resume_writing()

    def check_reader(self, now: float) -> float:
        """Abort the connection of a client that has read nothing for too long.

        Returns:
            The seconds for which the client has read none of the data that is buffered for it.
        """
        if self._open_transport is None:
            return 0.0
        waiting = self._open_transport.get_write_buffer_size()
        if waiting == 0 or waiting < self._unread:
            self._progress_at = now
        self._unread = waiting
        stalled_s = now - self._progress_at if waiting else 0.0
        if stalled_s > self._connections.limits.stalled_reader_s:
            self.abort("limits.stalled_reader_s")
        return stalled_s

    def abort(self, limit: str) -> None:
        """Abort the connection of a client that does not read, and count the limit."""
        self._context.metrics.limits_reached.labels(limit).inc()
        if self._open_transport is not None:
            self._open_transport.abort()
