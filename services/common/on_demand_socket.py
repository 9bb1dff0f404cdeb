"""Unix sockets whose servers are started by the first connection."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

_BACKLOG = 128
_MAX_READ = 64 << 10

log = logging.getLogger(__name__)


class OnDemandSocket:
    """A Unix socket that listens at once, and whose server is started by the first connection.

    The server listens on a socket of its own, which then replaces the first socket. Earlier
    connections are relayed to the server; later ones are made to the server directly.

    Args:
        path: path of the socket. An existing socket is replaced.
        start: starts the server on a Unix socket with the given path. OSError and RuntimeError are
            logged, and the next connection tries again.
    """

    def __init__(self, path: str, start: Callable[[str], Awaitable[None]]) -> None:
        self._path = path
        self._start = start
        self._starting = asyncio.Lock()
        self._has_started = False
        self._socket: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._relays: set[asyncio.Task[None]] = set()

    def listen(self) -> None:
        """Start listening: callers can connect, and wait until `serve` is called.

        Raises:
            OSError: the socket cannot be created.
        """
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self._path)
        self._socket.listen(_BACKLOG)

    async def serve(self) -> None:
        """Start accepting connections."""
        self._server = await asyncio.start_unix_server(self._accept, sock=self._socket)

    def close(self) -> None:
        """Stop accepting connections; relayed connections and the server continue."""
        if self._server is not None:
            self._server.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)

    async def wait_closed(self) -> None:
        """Close the relayed connections; must be called after the server has stopped."""
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.create_task(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._ensure_started()
            from_server, to_server = await asyncio.open_unix_connection(self._path)
            try:
                await asyncio.gather(_copy(reader, to_server), _copy(from_server, writer))
            finally:
                to_server.close()
        except (OSError, RuntimeError) as error:
            log.error("a server for a socket could not be started", exc_info=error)
        finally:
            writer.close()

    async def _ensure_started(self) -> None:
        async with self._starting:
            if not self._has_started:
                own_path = f"{self._path}~"
                await self._start(own_path)
                # The first socket still accepts connections that were being made to it.
                os.rename(own_path, self._path)
                self._has_started = True


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_MAX_READ):
            writer.write(data)
            await writer.drain()
    # The other end may have closed the connection, which uvloop reports by a RuntimeError.
    with suppress(OSError, RuntimeError):
        writer.write_eof()
