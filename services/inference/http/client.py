"""Keeps connections for the next request, and opens new ones."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from typing import Self

import aiohappyeyeballs

from services.inference.http.connection import Connection, Response
from services.inference.http.errors import ConnectionBrokenError
from services.inference.http.origins import Origin
from services.inference.http.proxies import Proxies, Proxy

# Servers close what lies idle after 60 s or more; a request that meets the end of its
# connection on the way fails, so ours ends before.
_IDLE_S = 30.0
# How long one address of a host is tried alone before the next is tried beside it
# (RFC 8305, section 5).
_NEXT_ADDRESS_S = 0.25


class Client:
    """A client, shared by all providers of a process.

    Args:
        connect_timeout_s: seconds for a connection to stand, TLS included.
        proxies: what stands between.
        tls: what servers must prove; the system's authorities when None.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        connect_timeout_s: float,
        proxies: Proxies | None = None,
        tls: ssl.SSLContext | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._proxies = proxies or Proxies()
        self._tls = tls
        self._monotonic = monotonic
        self._idle: dict[Origin, list[Connection]] = {}
        self._open: set[Connection] = set()
        self._is_closed = False
        self._none_open = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Give itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection."""
        await self.close()

    async def send(
        self, origin: Origin, method: str, target: str, fields: str, body: bytes = b""
    ) -> Response:
        """Send a request; give the answer with its body unread.

        Args:
            origin: the server.
            method: such as `POST`.
            target: path and query, as they go on the wire.
            fields: lines of the head, each with its CRLF, but for those that every
                request has: host, content-length, accept-encoding.
            body: the whole of it.

        Raises:
            HttpError: no connection, or nothing on it that is an answer.
            TimeoutError: no connection in time.
        """
        connection = self._take(origin)
        if connection is None:
            connection = await self._connect(origin)
        proxy = None if origin.is_secure else self._proxies.before(origin)
        if proxy is not None:
            target = f"http://{origin.authority}{target}"
            fields += proxy.fields
        head = (
            f"{method} {target} HTTP/1.1\r\nhost: {origin.authority}\r\n{fields}"
            f"accept-encoding: identity\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        try:
            return await connection.request(head.encode(), body)
        except BaseException:
            connection.close()
            raise

    async def close(self) -> None:
        """Close every connection."""
        self._is_closed = True
        for connection in self._open:
            connection.close()
        if self._open:
            await self._none_open.wait()

    def _take(self, origin: Origin) -> Connection | None:
        """Give the idle connection used last, if there is one; it is the freshest."""
        idle = self._idle.get(origin)
        if not idle:
            return None
        oldest = self._monotonic() - _IDLE_S
        while idle and idle[0].idle_since < oldest:
            idle.pop(0).close_idle()
        while idle:
            connection = idle.pop()
            if connection.is_usable:
                return connection
        return None

    async def _connect(self, origin: Origin) -> Connection:
        def released(connection: Connection) -> None:
            if self._is_closed:
                connection.close()
            else:
                connection.idle_since = self._monotonic()
                self._idle.setdefault(origin, []).append(connection)

        def lost(connection: Connection) -> None:
            self._open.discard(connection)
            if self._is_closed and not self._open:
                self._none_open.set()
            idle = self._idle.get(origin)
            if idle and connection in idle:
                idle.remove(connection)

        proxy = self._proxies.before(origin)
        connection = Connection(released, lost)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await self._reach(connection, origin, proxy)
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            raise ConnectionBrokenError from error
        if connection.is_usable:
            # One that is lost by now has been told of already, and would stay here for ever.
            self._open.add(connection)
        return connection

    async def _reach(self, connection: Connection, origin: Origin, proxy: Proxy | None) -> None:
        loop = asyncio.get_running_loop()
        first = origin if proxy is None else proxy.origin
        is_direct = proxy is None and origin.is_secure
        addresses = await loop.getaddrinfo(first.host, first.port, type=socket.SOCK_STREAM)
        raw = await aiohappyeyeballs.start_connection(
            addresses, happy_eyeballs_delay=_NEXT_ADDRESS_S, loop=loop
        )
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.create_connection(
            lambda: connection,
            sock=raw,
            ssl=self._context() if is_direct else None,
            server_hostname=origin.host if is_direct else None,
        )
        if proxy is not None and origin.is_secure:
            try:
                await self._tunnel(connection, origin, proxy)
            except BaseException:
                connection.close()
                raise

    async def _tunnel(self, connection: Connection, origin: Origin, proxy: Proxy) -> None:
        """Let the proxy connect to a server, and begin TLS with that (RFC 9110, 9.3.6)."""
        place = f"{origin.host}:{origin.port}"
        head = f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n{proxy.fields}\r\n"
        await connection.open_tunnel(head.encode(), self._context(), origin.host)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls
