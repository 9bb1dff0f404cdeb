"""Unix sockets whose servers start when the first caller connects."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

_BACKLOG = 128
_MAX_READ = 64 << 10

log = logging.getLogger(__name__)


class LaterSocket:
    """A Unix socket that listens at once, and whose server starts with the first connection.

    The server listens on a socket of its own, which then takes the first one's place. Connections
    made before are relayed to it; all others are made to the server itself.

    Args:
        path: path of the socket. A socket that is there already is replaced.
        start: starts the server on the socket whose path it gets. OSError and RuntimeError are
            logged, and the next connection starts it anew.
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
        """Listen: callers can connect, and wait until `serve` is called.

        Raises:
            OSError: the socket cannot be made.
        """
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self._path)
        self._socket.listen(_BACKLOG)

    async def serve(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_unix_server(self._accept, sock=self._socket)

    def close(self) -> None:
        """Accept no more connections; what is relayed goes on, and so does the server."""
        if self._server is not None:
            self._server.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)

    async def wait_closed(self) -> None:
        """Cut what is still relayed; to be called once the server has stopped."""
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
            log.error("no server for the callers of a socket", exc_info=error)
        finally:
            writer.close()

    async def _ensure_started(self) -> None:
        async with self._starting:
            if not self._has_started:
                own_path = f"{self._path}~"
                await self._start(own_path)
                # The first socket still accepts those who were about to connect to it.
                os.rename(own_path, self._path)
                self._has_started = True


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_MAX_READ):
            writer.write(data)
            await writer.drain()
    # The other end may have gone meanwhile, which uvloop reports by a RuntimeError.
    with suppress(OSError, RuntimeError):
        writer.write_eof()
