"""The requests that API clients send all day, read without aiohttp's parser.

A head is plain where every reader of HTTP/1.1 agrees on it: one pattern says what that is, and
takes much less than RFC 9112 allows. No field is there twice, none says anything about framing
but one `Content-Length`, and nothing follows the body. Such a request to one of a few paths
becomes here what aiohttp's parser would make of it. All else goes to that parser, with the
very bytes that came.

aiohttp's parser does not tell whether it is between two requests. Its bytes are counted while
their heads are plain; from a head on that is not, everything of the connection is for aiohttp.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from aiohttp import HttpVersion11, hdrs
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from services.common.settings import Limits

Message = tuple[RawRequestMessage, StreamReader]

# Nothing here can be matched in two ways, and nothing is tried twice.
_HEAD = re.compile(
    rb"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/[!-~]*+) HTTP/1\.1\r\n"
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]++: *+(?:[!-~]++(?: ++[!-~]++)*+)?+\r\n)++)\r\n"
)
_FIELD = re.compile(r"([^:]++): *+([^\r]*+)\r\n")
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


class PlainReader:
    """Reads the plain requests of one connection.

    Attributes:
        ahead: bytes that come before the next request begins: of a body that is read here, or of
            a request that aiohttp's parser reads. It is negative once that is not known.
        body: the body that is read here and has not come to its end.
    """

    def __init__(
        self,
        paths: Mapping[bytes, URL],
        limits: Limits,
        protocol: BaseProtocol,
        read_ahead: int,
    ) -> None:
        """Begin at the first byte of a connection.

        Args:
            paths: where a POST is read here; with none, aiohttp's parser reads everything.
            limits: what a head may have.
            protocol: is told to pause while more than twice `read_ahead` of a body waits.
            read_ahead: bytes.
        """
        self.ahead = 0 if paths else _UNKNOWN
        self.body: StreamReader | None = None
        self._paths = paths
        self._max_head = limits.max_head_bytes
        self._max_fields = limits.max_header_fields
        self._protocol = protocol
        self._read_ahead = read_ahead
        self._loop = asyncio.get_running_loop()

    def read(self, data: bytes) -> Message | None:
        """Return the request that `data` begins; None where aiohttp's parser is to read `data`.

        To be called while `ahead` is 0.
        """
        head = _HEAD.match(data, 0, self._max_head)
        # As long as nothing below says otherwise.
        self.ahead = _UNKNOWN
        if head is None:
            return None
        fields = _FIELD.findall(head[3].decode())
        headers = CIMultiDict(fields)
        names = {name.lower() for name, _ in fields}
        length = _length_of_body(headers, names)
        if length is None:
            return None
        left = head.end() + length - len(data)
        if left < 0:
            return None
        self.ahead = left
        url = self._paths.get(head[2])
        is_complete = "host" in names and len(names) == len(headers) <= self._max_fields
        if url is None or head[1] != b"POST" or not length or not is_complete:
            return None
        message = RawRequestMessage(
            hdrs.METH_POST,
            url.raw_path,
            HttpVersion11,
            CIMultiDictProxy(headers),
            (),  # nobody asks for the headers as they came
            False,  # the connection stays
            None,
            False,
            False,
            url,
        )
        come = data[head.end() :]
        if left == 0:
            return message, _WholeBody(come, self._protocol, self._loop)
        self.body = StreamReader(self._protocol, self._read_ahead, loop=self._loop)
        self.body.feed_data(come)
        return message, self.body

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


class _WholeBody(StreamReader):
    """A body that came with its head."""

    __slots__ = ()

    def __init__(
        self, body: bytes, protocol: BaseProtocol, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(protocol, len(body), loop=loop)
        self._buffer.append(body)
        self._size = self.total_bytes = len(body)
        self._eof = True

    def read_nowait(self, n: int = -1) -> bytes:
        """Return the body, of which nothing is left."""
        if n != -1 or self._exception is not None or self._buffer_offset or not self._buffer:
            return super().read_nowait(n)
        self._size = 0
        return self._buffer.popleft()


def _length_of_body(headers: CIMultiDict[str], names: set[str]) -> int | None:
    """Return the bytes of a body, or None where its framing is not plain."""
    if not names.isdisjoint(_UNUSUAL):
        return None
    if "connection" in names and not _STAYS.issuperset(headers.getall("connection")):
        return None
    lengths = headers.getall("content-length", ["0"])
    return int(lengths[0]) if len(lengths) == 1 and _LENGTH.fullmatch(lengths[0]) else None
