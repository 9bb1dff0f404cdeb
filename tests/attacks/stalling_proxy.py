"""A proxy in a thread of its own that can stop forwarding, as a server that hangs does.

Connections stay open, and further ones are accepted; nothing is forwarded until `resume`.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_PIECE = 1 << 16


class StallingProxy:
    """Forwards connections to one server until it is told to stall."""

    def __init__(self, host_and_port: tuple[str, int] | None = None, path: str = "") -> None:
        """Forward to a TCP port, or to a Unix socket at a path."""
        self._address = host_and_port
        self._path = path
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._forwards = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    def start(self, at: Path | None = None) -> None:
        """Listen on a free port, or on a Unix socket at a path."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(at), self._loop).result()

    def stall(self) -> None:
        """Forward nothing from now on."""
        self._call(self._forwards.clear)

    def resume(self) -> None:
        """Forward what has come, and what comes."""
        self._call(self._forwards.set)

    def stop(self) -> None:
        """Close every connection."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._call(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, function: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(function)

    async def _start(self, at: Path | None) -> None:
        self._forwards.set()
        if at is not None:
            self._server = await asyncio.start_unix_server(self._serve, at)
        else:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with closing(writer):
            await self._forwards.wait()
            with suppress(OSError):
                server_reader, server_writer = await self._connect()
                with closing(server_writer):
                    pumps = [
                        asyncio.create_task(self._pump(reader, server_writer)),
                        asyncio.create_task(self._pump(server_reader, writer)),
                    ]
                    try:
                        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for pump in pumps:
                            pump.cancel()

    async def _connect(self) -> Streams:
        if self._address is not None:
            return await asyncio.open_connection(*self._address)
        return await asyncio.open_unix_connection(self._path)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(_PIECE):
                await self._forwards.wait()
                writer.write(piece)
                await writer.drain()


@contextmanager
def stalling_proxy(
    host_and_port: tuple[str, int] | None = None, path: str = "", at: Path | None = None
) -> Iterator[StallingProxy]:
    """Run one in front of a server."""
    proxy = StallingProxy(host_and_port, path)
    proxy.start(at)
    try:
        yield proxy
    finally:
        proxy.stop()
