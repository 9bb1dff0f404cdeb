"""The requests that API clients send all day, read without aiohttp's parser.

A head is plain where every reader of HTTP/1.1 agrees on it: one pattern says what that is, and
takes much less than RFC 9112 allows. No field is there twice, none says anything about framing
but one `Content-Length`, and nothing follows the body. Such a request to one of a few paths is
served without aiohttp. All else goes to aiohttp's parser, with the very bytes that came.

aiohttp's parser does not tell whether it is between two requests. Its bytes are counted while
their heads are plain; from a head on that is not, everything of the connection is for aiohttp.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import hdrs
from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader

from facade.context import Context
from facade.http.exchange import ClientConnection, Exchange
from facade.http.responses import Response

# Nothing here can be matched in two ways, and nothing is tried twice.
_HEAD = re.compile(
    rb"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/[!-~]*+) HTTP/1\.1\r\n"
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]++: *+(?:[!-~]++(?: ++[!-~]++)*+)?+\r\n)++)\r\n"
)
_LENGTH = re.compile(r"[1-9][0-9]{0,14}|0", re.ASCII)
_UNUSUAL = frozenset(
    {
        *("transfer-encoding", "content-encoding", "te", "trailer", "expect", "upgrade"),
        *("keep-alive", "proxy-connection", "http2-settings", "sec-websocket-key1"),
    }
)
_STAYS = frozenset({"keep-alive", "Keep-Alive"})
# What `PlainReader.ahead` is once nobody knows where the next request begins.
_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class PlainEndpoint:
    """What serves the plain requests to one path.

    Attributes:
        path: the path, which names the route too.
        respond: returns the response, whatever happens; raises where there is nobody to tell.
    """

    path: str
    respond: Callable[[Exchange], Awaitable[Response]]


PlainRequest = tuple[PlainEndpoint, Exchange]


class PlainReader:
    """Reads the plain requests of one connection.

    Attributes:
        ahead: bytes that come before the next request begins: of a body that is read here, or of
            a request that aiohttp's parser reads. It is negative once that is not known.
        body: the body that is read here and has not come to its end.
    """

    def __init__(
        self,
        endpoints: Mapping[bytes, PlainEndpoint],
        context: Context,
        connection: ClientConnection,
        protocol: BaseProtocol,
        read_ahead: int,
    ) -> None:
        """Begin at the first byte of a connection.

        Args:
            endpoints: of a POST that is served here, by path; without any, aiohttp's parser
                reads everything.
            context: settings, metrics and the services.
            connection: that the requests come on.
            protocol: the same; is told to pause while more than twice `read_ahead` of a body waits.
            read_ahead: bytes.
        """
        self.ahead = 0 if endpoints else _UNKNOWN
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

    def read(self, data: bytes) -> PlainRequest | None:
        """Return the request that `data` begins; None where aiohttp's parser is to read `data`.

        To be called while `ahead` is 0.
        """
        head = _HEAD.match(data, 0, self._max_head)
        # As long as nothing below says otherwise.
        self.ahead = _UNKNOWN
        if head is None:
            return None
        method, path, lines = head.groups()
        fields = lines.decode().split("\r\n")
        fields.pop()  # nothing, behind the last line's end
        headers = {}
        for field in fields:
            name, _, value = field.partition(":")
            headers[name.lower()] = value.lstrip(" ")
        if len(headers) != len(fields) or not _UNUSUAL.isdisjoint(headers):
            return None
        if headers.get("connection", "keep-alive") not in _STAYS:
            return None
        said = headers.get("content-length", "0")
        if not _LENGTH.fullmatch(said):
            return None
        begins = head.end()
        length = int(said)
        left = begins + length - len(data)
        if left < 0:
            return None
        self.ahead = left
        endpoint = self._endpoints.get(path)
        is_complete = "host" in headers and len(headers) <= self._max_fields
        if endpoint is None or method != b"POST" or not length or not is_complete:
            return None
        body: bytes | None = data[begins:]
        content = None
        if left:
            content = self.body = StreamReader(self._protocol, self._read_ahead, loop=self._loop)
            content.feed_data(data[begins:])
            body = None
        name = endpoint.path
        return endpoint, Exchange(
            self._context, self._connection, hdrs.METH_POST, name, name, headers, body, content
        )

    def read_body(self, data: bytes) -> bytes:
        """Take what is of the body that has not come to its end; return what follows it."""
        body = self.body
        assert body is not None
        piece = data[: self.ahead]
        body.feed_data(piece)
        self.ahead -= len(piece)
        if self.ahead == 0:
            self.body = None
            body.feed_eof()
        return data[len(piece) :]

    def pass_over(self, size: int) -> None:
        """Note that aiohttp's parser reads so many bytes more."""
        if self.ahead > 0:
            # With more than the rest of its request, another one has begun.
            self.ahead = max(self.ahead - size, _UNKNOWN)
        else:
            self.ahead = _UNKNOWN
