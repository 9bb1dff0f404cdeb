"""HTTP client with a connection pool."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Self

import aiohappyeyeballs

from services.common.http.connection import ReadSize, UpstreamConnection, read_size
from services.common.http.errors import AddressNotAllowedError, ConnectionBrokenError
from services.common.http.origins import Origin
from services.common.http.proxies import Proxies, Proxy
from services.common.http.request_body import PiecedBody
from services.common.http.response import Response

# Minimum idle time before a connection is reused for the first time. A server that sends two
# responses to a request does so within moments, and the second one would be taken for the response
# to the next request. If none follows the first response, the connection is trusted from then on,
# except for data that has arrived before the next request. Reusing a connection at once keeps it in
# the processor's caches, and needs fewer connections.
_SETTLE_S = 0.05
# Delay before the next address of a host is tried in parallel (RFC 8305, section 5).
_NEXT_ADDRESS_S = 0.25
# Number of cached request heads; targets may contain a model's name.
_HEADS = 1_000


class Client:
    """An HTTP client, shared by all providers of a process.

    Args:
        connect_timeout_s: timeout of connecting, TLS included.
        max_answer_bytes: maximum size of a response in bytes, compressed and decompressed.
        idle_s: seconds after which an idle connection is closed. Servers close idle connections
            after 60 s or more; a request sent at that moment fails.
        max_idle: maximum idle connections.
        settle_s: seconds after its first response before a connection is reused.
        proxies: the proxies.
        tls: verification of certificates; by the system's authorities if None.
        monotonic: monotonic clock in seconds.
        may_connect: returns whether a server may have an IP address; by default it may have any.
            The addresses of a server behind a proxy are the proxy's business, unless the server is
            named by an address.
    """

    def __init__(
        self,
        connect_timeout_s: float,
        proxies: Proxies | None = None,
        tls: ssl.SSLContext | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        max_answer_bytes: int = 80 << 20,
        idle_s: float = 30,
        max_idle: int = 256,
        settle_s: float = _SETTLE_S,
        may_connect: Callable[[Origin, str], bool] | None = None,
    ) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._max_answer = max_answer_bytes
        self._idle_s = idle_s
        self._max_idle = max_idle
        self._settle_s = settle_s
        self._may_connect = may_connect
        self._proxies = proxies or Proxies()
        self._tls = tls
        self._monotonic = monotonic
        # Idle connections by server, the most recently used ones last.
        self._idle: dict[Origin, dict[UpstreamConnection, None]] = {}
        self._idle_count = 0
        self._reads = ReadSize()
        self._sweep: asyncio.TimerHandle | None = None
        self._open: set[UpstreamConnection] = set()
        self._is_closed = False
        self._none_open = asyncio.Event()
        self._start = lru_cache(_HEADS)(self._start_of)

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self.close()

    async def send(
        self,
        origin: Origin,
        method: str,
        target: str,
        fields: str,
        body: bytes | PiecedBody = b"",
    ) -> Response:
        """Send a request; return its response with the body unread.

        Args:
            origin: the server.
            method: such as `POST`.
            target: path and query, as sent.
            fields: header lines, each with its CRLF, without host, content-length and
                accept-encoding.
            body: the body.

        Raises:
            HttpError: connecting failed, or no valid response arrived.
            TimeoutError: connecting timed out.
            Exception: as the pieces of the body.
        """
        connection = self._take(origin)
        if connection is None:
            connection = await self._connect(origin)
        self._reads.most = read_size(len(self._open) - self._idle_count)
        size = len(body) if isinstance(body, bytes) else body.size
        head = (
            f"{self._start(origin, method, target)}{fields}"
            f"accept-encoding: identity\r\ncontent-length: {size}\r\n\r\n"
        )
        try:
            response = connection.request(head.encode(), body)
            del body  # the connection holds it until it is sent
            return await response
        except BaseException:
            connection.close()
            raise

    def _start_of(self, origin: Origin, method: str, target: str) -> str:
        """Return the request line and the fixed header lines."""
        proxy = None if origin.is_secure else self._proxies.before(origin)
        proxy_fields = ""
        if proxy is not None:
            target = f"http://{origin.authority}{target}"
            proxy_fields = proxy.fields
        return f"{method} {target} HTTP/1.1\r\nhost: {origin.authority}\r\n{proxy_fields}"

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in self._open:
            connection.close()
        if self._open:
            await self._none_open.wait()

    def _take(self, origin: Origin) -> UpstreamConnection | None:
        """Return an idle connection to a server, if there is a usable one."""
        idle = self._idle.get(origin)
        if idle is None:
            return None
        now = self._monotonic()
        while idle:
            connection = next(reversed(idle))
            if not connection.has_settled:
                # Try the one that has been idle for the longest time instead.
                connection = next(iter(idle))
                if connection.idle_since > now - self._settle_s:
                    return None
                connection.has_settled = True
            del idle[connection]
            self._idle_count -= 1
            is_fresh = connection.idle_since >= now - self._idle_s
            if is_fresh and connection.is_usable and connection.is_silent():
                return connection
            connection.close_idle()
        return None

    def _keep(self, origin: Origin, connection: UpstreamConnection) -> None:
        """Put a connection into the pool."""
        if self._is_closed:
            connection.close()
            return
        if self._idle_count >= self._max_idle:
            connection.close_idle()
            return
        connection.idle_since = self._monotonic()
        self._idle.setdefault(origin, {})[connection] = None
        self._idle_count += 1
        self._reads.most = read_size(len(self._open) - self._idle_count)
        if self._sweep is None:
            loop = asyncio.get_running_loop()
            self._sweep = loop.call_later(self._idle_s, self._close_old)

    def _remove(self, origin: Origin, connection: UpstreamConnection) -> None:
        """Remove a connection from the pool."""
        idle = self._idle.get(origin, {})
        if connection in idle:
            del idle[connection]
            self._idle_count -= 1

    def _close_old(self) -> None:
        """Close connections that were idle for too long, and schedule the next check."""
        self._sweep = None
        oldest = self._monotonic() - self._idle_s
        for origin, idle in list(self._idle.items()):
            for connection in list(idle):
                if connection.idle_since > oldest:
                    break
                self._remove(origin, connection)
                connection.close_idle()
        if self._idle_count:
            first = min(next(iter(idle)).idle_since for idle in self._idle.values() if idle)
            self._sweep = asyncio.get_running_loop().call_later(first - oldest, self._close_old)

    async def _connect(self, origin: Origin) -> UpstreamConnection:
        def lost(connection: UpstreamConnection) -> None:
            self._open.discard(connection)
            if self._is_closed and not self._open:
                self._none_open.set()
            self._remove(origin, connection)

        proxy = self._proxies.before(origin)
        connection = UpstreamConnection(
            self._max_answer, self._reads, partial(self._keep, origin), lost
        )
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await self._reach(connection, origin, proxy)
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            first = origin.authority if proxy is None else f"the proxy {proxy.origin.authority}"
            raise ConnectionBrokenError(f"{first}: {error}") from error
        if connection.is_usable:
            # A connection lost by now has already called `lost`, and would stay in the pool for
            # ever.
            self._open.add(connection)
        return connection

    async def _reach(
        self, connection: UpstreamConnection, origin: Origin, proxy: Proxy | None
    ) -> None:
        loop = asyncio.get_running_loop()
        first = origin if proxy is None else proxy.origin
        is_direct = proxy is None and origin.is_secure
        addresses = await loop.getaddrinfo(first.host, first.port, type=socket.SOCK_STREAM)
        if self._may_connect is not None:
            # Checked where it is used: a name may have another address each time.
            hosts = [origin.host] if proxy is not None else [str(info[4][0]) for info in addresses]
            if not all(self._may_connect(origin, host) for host in hosts):
                raise AddressNotAllowedError(f"{origin.authority}: its address is not allowed")
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

    async def _tunnel(self, connection: UpstreamConnection, origin: Origin, proxy: Proxy) -> None:
        """Open a tunnel through a proxy and start TLS with the server (RFC 9110, 9.3.6)."""
        place = f"{origin.host}:{origin.port}"
        head = f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n{proxy.fields}\r\n"
        await connection.open_tunnel(head.encode(), self._context(), origin.host)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls
