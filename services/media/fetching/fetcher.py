"""HTTP fetcher for public web servers."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Container, Sequence
from io import BytesIO

from gateway.errors.v1 import errors_pb2
from services.common import http
from services.common.errors import GatewayError, invalid
from services.common.http.connection import ReadSize, UpstreamConnection
from services.common.process.byte_budget import Admit
from services.common.settings import Limits
from services.media.fetching import connecting, naming
from services.media.fetching.addresses import Address
from services.media.fetching.fetched import Fetched
from services.media.fetching.targets import WEB_PORTS, FetchTarget, redirected, target_of

MAX_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# 4xx statuses that are temporary.
_PASSING = frozenset({408, 425, 429})
# Allowance beyond the body, in bytes: the head, and the framing of chunks of 16 bytes and more.
_MAX_HEAD = 64 << 10
_FRAMING = 2
# Bytes that are admitted at once of content of unknown length.
_ADMITTED = 1 << 20
_FIELDS = http.fields(
    (
        ("user-agent", "sluicegate (fetches addresses for its users)"),
        ("accept", "*/*"),
        ("accept-encoding", "gzip"),
        ("connection", "close"),
    )
)

Resolve = Callable[[str], Awaitable[Sequence[str]]]
Connect = Callable[[Sequence[Address], int], Awaitable[socket.socket]]


class Fetcher:
    """Fetches URLs, each over a new connection; see `Fetches`.

    A host is resolved once per request. All of its addresses must be allowed, and the connection
    goes to one of them. TLS certificates are checked against the host name. No proxy, cookies or
    credentials are used.

    Args:
        limits: `fetch_timeout_s`, `max_parallel_fetches`.
        resolve: returns the IP addresses of a host.
        is_allowed: returns whether connecting to an IP address is allowed.
        connect: opens a socket to one of several addresses.
        ports: ports to which connecting is allowed.
        tls: verification of certificates; by the system's authorities if None.
        timeout: creates the timeout of a fetch.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        resolve: Resolve,
        is_allowed: Callable[[Address], bool] = connecting.is_allowed,
        connect: Connect = connecting.connect,
        ports: Container[int] = WEB_PORTS,
        tls: ssl.SSLContext | None = None,
        timeout: Callable[[float], asyncio.Timeout] = asyncio.timeout,
    ) -> None:
        self._timeout_s = limits.fetch_timeout_s
        self._places = asyncio.Semaphore(limits.max_parallel_fetches)
        self._resolve = resolve
        self._is_allowed = is_allowed
        self._connect = connect
        self._ports = ports
        self._tls = tls
        self._timeout = timeout

    async def fetch(self, url: str, *, at_most: int, admit: Admit | None = None) -> Fetched:
        """Return the content of a URL; see `Fetches.fetch`."""
        target = target_of(url, self._ports)
        async with self._places:
            try:
                async with self._timeout(self._timeout_s) as timeout:
                    return await self._follow(
                        target, at_most, _outside(timeout, admit or _admit_all)
                    )
            except TimeoutError:
                raise GatewayError(
                    errors_pb2.REASON_UPSTREAM_TIMEOUT,
                    f"the URL could not be fetched within {self._timeout_s:g} s",
                    limit="limits.fetch_timeout_s",
                ) from None
            except http.TooLargeError:
                raise _too_large(at_most) from None
            except http.NotHttpError as error:
                raise GatewayError(
                    errors_pb2.REASON_UPSTREAM_ERROR,
                    "the server of the URL did not answer with HTTP/1.1, or with an unsupported "
                    "content-encoding",
                ) from error
            except ssl.SSLError as error:
                raise GatewayError(
                    errors_pb2.REASON_UPSTREAM_CONNECTION,
                    "the server of the URL has no valid TLS certificate",
                ) from error
            except (OSError, http.HttpError) as error:
                raise GatewayError(
                    errors_pb2.REASON_UPSTREAM_CONNECTION,
                    "the connection to the server of the URL failed",
                ) from error

    async def _follow(self, target: FetchTarget, at_most: int, admit: Admit) -> Fetched:
        for _ in range(MAX_REDIRECTS + 1):
            connection = await self._open(target, at_most)
            try:
                head = f"GET {target.path} HTTP/1.1\r\nhost: {target.origin.authority}\r\n"
                response = await connection.request(f"{head}{_FIELDS}\r\n".encode(), b"")
                location = response.headers.get("location")
                if response.status not in _REDIRECTS or not location:
                    return await _read(response, target, at_most, admit)
            finally:
                connection.close()
            target = redirected(target, naming.field_text(location), self._ports)
        raise invalid("", f"the URL redirects more than {MAX_REDIRECTS} times")

    async def _open(self, target: FetchTarget, at_most: int) -> UpstreamConnection:
        host, port, is_secure = target.origin
        addresses = await self._addresses_of(host)
        raw = await self._connect(addresses, port)
        connection = UpstreamConnection(
            _MAX_HEAD + _FRAMING * at_most,
            ReadSize(),
            UpstreamConnection.close,
            lambda _: None,
        )
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: connection,
                sock=raw,
                ssl=self._context() if is_secure else None,
                server_hostname=host if is_secure else None,
            )
        except BaseException:
            raw.close()
            raise
        return connection

    async def _addresses_of(self, host: str) -> list[Address]:
        """Return the addresses of a host, all of them allowed.

        Raises:
            GatewayError: invalid_request, if there is none or any is not allowed. The message is
                the same for both, so that names of private networks cannot be probed.
        """
        try:
            addresses = [ipaddress.ip_address(text) for text in await self._resolve(host)]
        except (OSError, ValueError):
            addresses = []
        if not addresses or not all(map(self._is_allowed, addresses)):
            raise invalid(
                "",
                "the host of the URL is unknown or not public; send the content itself instead",
            )
        return addresses

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


async def _admit_all(size: int) -> None:
    """Admit any number of bytes."""


def _outside(timeout: asyncio.Timeout, admit: Admit) -> Admit:
    """Return `admit` for use within a timeout, which its waiting does not count towards."""

    async def admit_outside(size: int) -> None:
        loop = asyncio.get_running_loop()
        end = timeout.when()
        began = loop.time()
        timeout.reschedule(None)
        await admit(size)
        timeout.reschedule(None if end is None else end + loop.time() - began)

    return admit_outside


async def _read(
    response: http.Response, target: FetchTarget, at_most: int, admit: Admit
) -> Fetched:
    status, headers = response.status, response.headers
    if not 200 <= status < 300:
        message = f"the server of the URL answered with status {status}"
        if 400 <= status < 500 and status not in _PASSING:
            raise invalid("", message)
        raise GatewayError(errors_pb2.REASON_UPSTREAM_ERROR, message)
    length = headers.get("content-length", "")
    admitted = int(length) if length.isdecimal() and len(length) < 20 else 0
    if admitted > at_most:
        raise _too_large(at_most)
    await admit(admitted)
    body = BytesIO()
    while piece := await response.body.read():
        body.write(piece)
        if body.tell() > at_most:
            raise _too_large(at_most)
        while body.tell() > admitted:  # of unknown length, or compressed
            await admit(_ADMITTED)
            admitted += _ADMITTED
    mime_type, charset = naming.type_and_charset(headers.get("content-type", ""))
    return Fetched(
        url=str(target.url),
        content=body.getvalue(),
        mime_type=mime_type,
        charset=charset,
        name=naming.file_name(headers.get("content-disposition", ""), target.path),
    )


def _too_large(at_most: int) -> GatewayError:
    message = f"the content of the URL exceeds {at_most:,} bytes"
    return GatewayError(
        errors_pb2.REASON_INVALID_REQUEST, message, limit="limits.max_fetched_bytes"
    )
