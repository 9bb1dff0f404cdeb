"""A reader for plain requests, which most API clients send.

A head is plain if all parsers of HTTP/1.1 agree on it. One pattern defines plain heads; it matches
much less than RFC 9112 allows. No field is repeated, `Content-Length` is the only field about
framing, and no data follows the body in the same read. A plain POST request to one of a few paths
is read here. All other data goes to aiohttp's parser unchanged.

aiohttp's parser does not expose whether it is between two requests. The bytes of its requests are
counted while their heads are plain; after a head that is not, it reads the rest of the connection.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from aiohttp import hdrs
from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader

from facade.context import Context
from facade.http.exchange import CheckedHead, ClientConnection, Exchange
from facade.http.responses import Response

# The pattern is unambiguous and does not backtrack.
_HEAD = re.compile(
    rb"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/[!-~]*+) HTTP/1\.1\r\n"
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]++: *+(?:[!-~]++(?: ++[!-~]++)*+)?+\r\n)++)\r\n"
)
_LENGTH = re.compile(r"[1-9][0-9]{0,14}|0", re.ASCII)
# Matches at most once in a plain head, as no field is repeated.
_CONTENT_LENGTH = re.compile(rb"(?i:\r\ncontent-length): *([0-9]+)(?=\r\n)")
# Maximum digits of a length, and the end of its line.
_LONGEST_LENGTH: Final = 15 + 2
# Maximum size of a head that is kept for the next request of its connection.
_MAX_KEPT: Final = 4096
_NOT_PLAIN = frozenset(
    {
        *("transfer-encoding", "content-encoding", "te", "trailer", "expect", "upgrade"),
        *("keep-alive", "proxy-connection", "http2-settings", "sec-websocket-key1"),
    }
)
_KEEP_ALIVE = frozenset({"keep-alive", "Keep-Alive"})
# Value of `PlainReader.bytes_ahead` if the start of the next request is unknown.
_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class PlainEndpoint:
    """An endpoint for plain requests.

    Attributes:
        path: the path, which is also the name of the route.
        respond: returns a response, even for failures; raises if the client has left.
    """

    path: str
    respond: Callable[[Exchange], Awaitable[Response]]


PlainExchange = tuple[PlainEndpoint, Exchange]


class _KnownHead(NamedTuple):
    """The head of an earlier request, to recognize it in the next request of the connection.

    Most clients send the same head with each request, except for the length of the body.

    Attributes:
        before: the bytes before the digits of the length.
        after: the bytes after the digits.
        headers: the header fields.
        endpoint: the endpoint of the path.
        checked: the results of its checks.
    """

    before: bytes
    after: bytes
    headers: dict[str, str]
    endpoint: PlainEndpoint
    checked: CheckedHead


class PlainReader:
    """Reads the plain requests of one connection.

    Attributes:
        bytes_ahead: number of bytes before the next request, of a body that this reader reads or
            of a request that aiohttp's parser reads; negative if unknown.
        body: the body that this reader reads now.
    """

    def __init__(
        self,
        endpoints: Mapping[bytes, PlainEndpoint],
        context: Context,
        connection: ClientConnection,
        protocol: BaseProtocol,
        read_ahead: int,
    ) -> None:
        """Initialize a reader at the first byte of a connection.

        Args:
            endpoints: endpoints for plain POST requests, by path; if empty, aiohttp's parser
                reads everything.
            context: settings, metrics and the services.
            connection: the connection of the requests.
            protocol: the connection; paused while more than twice `read_ahead` of a body is
                buffered.
            read_ahead: bytes of a body that are read ahead.
        """
        self.bytes_ahead = 0 if endpoints else _UNKNOWN
        self.body: StreamReader | None = None
        self._endpoints = endpoints
        self._context = context
        limits = context.settings.limits
        self._max_head = limits.max_head_bytes
        self._max_fields = limits.max_header_fields
        self._connection = connection
        self._protocol = protocol
        self._read_ahead = read_ahead
        self._loop = asyncio.get_running_loop()
        self._known: _KnownHead | None = None

    def read(self, data: bytes) -> PlainExchange | None:
        """Return the plain request at the start of `data`, or None if aiohttp must parse `data`.

        Call this only while `bytes_ahead` is 0.
        """
        known_head = self._known
        if known_head is not None and data.startswith(known_head.before):
            request = self._read_known(known_head, data)
            if request is not None:
                return request
        head = _HEAD.match(data, 0, self._max_head)
        # Unless the checks below pass.
        self.bytes_ahead = _UNKNOWN
        if head is None:
            return None
        method, path, lines = head.groups()
        fields = lines.decode().split("\r\n")
        fields.pop()  # the empty string after the last line
        headers = {}
        for field in fields:
            name, _, value = field.partition(":")
            headers[name.lower()] = value.lstrip(" ")
        if len(headers) != len(fields) or not _NOT_PLAIN.isdisjoint(headers):
            return None
        if headers.get("connection", "keep-alive") not in _KEEP_ALIVE:
            return None
        length_digits = headers.get("content-length", "0")
        if not _LENGTH.fullmatch(length_digits):
            return None
        begins = head.end()
        length = int(length_digits)
        left = begins + length - len(data)
        if left < 0:
            return None
        self.bytes_ahead = left
        endpoint = self._endpoints.get(path)
        is_complete = "host" in headers and len(headers) <= self._max_fields
        if endpoint is None or method != b"POST" or not length or not is_complete:
            return None
        checked = CheckedHead()
        if begins <= _MAX_KEPT:
            digits = _CONTENT_LENGTH.search(data, 0, begins)
            assert digits is not None, "a request with a body has one"
            before, after = data[: digits.start(1)], data[digits.end(1) : begins]
            self._known = _KnownHead(before, after, headers, endpoint, checked)
        return self._begin(endpoint, headers, data[begins:], left, checked)

    def _read_known(self, known_head: _KnownHead, data: bytes) -> PlainExchange | None:
        """Return the request at the start of `data` if its head differs only in the length."""
        starts = len(known_head.before)
        ends = data.find(b"\r\n", starts, starts + _LONGEST_LENGTH)
        if ends < 0 or not data.startswith(known_head.after, ends):
            return None
        digits = data[starts:ends]
        if not digits.isdigit() or digits.startswith(b"0"):
            return None
        begins = ends + len(known_head.after)
        left = begins + int(digits) - len(data)
        if left < 0 or begins > self._max_head:
            return None
        self.bytes_ahead = left
        headers = known_head.headers.copy()
        headers["content-length"] = digits.decode()
        return self._begin(known_head.endpoint, headers, data[begins:], left, known_head.checked)

    def _begin(
        self,
        endpoint: PlainEndpoint,
        headers: dict[str, str],
        data: bytes,
        left: int,
        checked: CheckedHead,
    ) -> PlainExchange:
        """Return a request whose body begins with `data`; `left` bytes of it are still missing."""
        body: bytes | None = data
        content = None
        if left:
            content = self.body = StreamReader(self._protocol, self._read_ahead, loop=self._loop)
            content.feed_data(data)
            body = None
        name = endpoint.path
        return endpoint, Exchange(
            self._context,
            self._connection,
            hdrs.METH_POST,
            name,
            name,
            headers,
            body,
            content,
            checked,
        )

    def read_body(self, data: bytes) -> bytes:
        """Feed the current body; return the bytes after it."""
        body = self.body
        assert body is not None
        piece = data[: self.bytes_ahead]
        body.feed_data(piece)
        self.bytes_ahead -= len(piece)
        if self.bytes_ahead == 0:
            self.body = None
            body.feed_eof()
        return data[len(piece) :]

    def skip(self, size: int) -> None:
        """Count bytes parsed by aiohttp's parser."""
        if self.bytes_ahead > 0:
            # More bytes than the rest of its request: another one has started.
            self.bytes_ahead = max(self.bytes_ahead - size, _UNKNOWN)
        else:
            self.bytes_ahead = _UNKNOWN

    def close(self) -> None:
        """Release the connection; the reader cannot be used afterwards."""
        self.bytes_ahead = _UNKNOWN
        self.body = self._known = None
        del self._connection, self._protocol
