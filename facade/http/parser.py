"""aiohttp's request parser, with limits on heads and with the gateway's own errors.

`BoundedParser` wraps the parser, which reads all requests except the plain ones of `PlainReader`.
Bytes are counted while a head is incomplete, which is rare after the first read. The parser stops
after each request and resumes when the connection begins to serve it, so that a request is
answered whatever follows it in the same packet.

After an error, and while the connection lingers, data is dropped.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from aiohttp import HttpVersion10, HttpVersion11
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader

from facade.http import head_errors
from facade.http.exchange import BrokenBodyError
from facade.http.head_errors import BadHeadError
from facade.http.plain import PlainExchange, PlainReader
from services.common.errors import GatewayError
from services.common.settings import Limits

# Bytes of a finished or rejected request that are read and dropped: most clients send a whole body
# before they read.
LINGER_BYTES: Final = 16 << 20
# Total size of all unfinished heads of a process, in bytes.
_ALL_HEADS: Final = 16 << 20
# Bytes of a head that are kept to determine its path.
_KEPT: Final = 1024

Message = tuple[RawRequestMessage, StreamReader]
Messages = Sequence[Message]
_NONE: Final[Messages] = ()


class UnfinishedHeads:
    """Counts the bytes of all unfinished heads of a process."""

    def __init__(self) -> None:
        self.size = 0


class BoundedParser:
    """Parses the requests of one connection.

    Attributes:
        began: when the awaited head began, on the loop's clock; None before it begins.
        messages: number of requests that have been parsed or refused.
        answered: number of those that have been answered; counted by the connection.
        discards: whether all further data is dropped.
        dropped: number of bytes dropped.
    """

    def __init__(
        self,
        parser: Any,
        plain: PlainReader,
        limits: Limits,
        heads: UnfinishedHeads,
        monotonic: Callable[[], float],
        resume_parsing: Callable[[], None],
        stop_reading: Callable[[], None],
    ) -> None:
        """Wrap `parser`, an `HttpRequestParser` with room for one request.

        Args:
            parser: aiohttp's parser.
            plain: reads plain requests.
            limits: limits on heads.
            heads: counts unfinished heads of the process.
            monotonic: seconds of the loop's clock.
            resume_parsing: called when `feed_data(b"")` may return further requests.
            stop_reading: called when `LINGER_BYTES` have been dropped.
        """
        self._feed = parser.feed_data
        self._consumed = parser.message_consumed
        self._pause_reading = parser.pause_reading
        self._plain = plain
        self.began: float | None = None
        self.messages = self.answered = 0
        self.discards = False
        self._limits = limits
        self._heads = heads
        self._monotonic = monotonic
        self._resume_parsing = resume_parsing
        self._stop_reading = stop_reading
        self._parsed = 0  # parsed requests that the connection has not begun to serve
        self.dropped = 0
        self._body: StreamReader | None = None
        # Whether the next data was read together with the end of a plain request's body.
        self._follows_body = False
        self._head_size = 0
        self._begun = b""

    @property
    def path(self) -> str:
        """The path of the awaited head, or "" if it has not arrived yet."""
        return head_errors.path_of(self._begun)

    @property
    def has_begun(self) -> bool:
        """Whether part of the awaited head has arrived."""
        return bool(self._begun)

    @property
    def has_plain_body(self) -> bool:
        """Whether the body of the plain request in progress has been received."""
        return self._plain.body is None

    def read_plain(self, data: bytes) -> PlainExchange | None:
        """Return the plain request at the start of `data`; None if `feed_data` must parse `data`.

        Call this with all data that arrives while no plain request is being served.
        """
        plain = self._plain
        if plain.bytes_ahead < 0 or self.discards:
            return None
        if plain.bytes_ahead or self.answered != self.messages:
            plain.skip(len(data))
            return None
        request = plain.read(data)
        if request is not None:
            self._follows_body = False
            self.messages += 1
            self.began = None
        return request

    def read_plain_body(self, data: bytes) -> bytes:
        """Feed the body of the plain request in progress; return the bytes after it."""
        if self.discards:
            self._drop(data)
            return b""
        if self._plain.body is None:
            return data
        following = self._plain.read_body(data)
        self._follows_body = bool(following)
        return following

    def feed_data(self, data: bytes) -> Messages:
        """Parse `data`; return the requests whose heads are complete.

        Upgrades to another protocol are ignored: the connection closes after such a request.

        Raises:
            BadHeadError: the request is refused.
        """
        if self.discards:
            self._drop(data)
            return _NONE
        body = self._body
        if body is None and data and not self._follows_body:
            return self._feed_head(data)
        self._follows_body = False
        try:
            messages = self._feed(data)[0]
            if body is not None and body is self._body and body.is_eof():
                # The parser has stopped after a request that is being served.
                self._body = None
                self._consumed()
                messages = self._feed(b"")[0]
        except Exception as error:
            if body is None or body.is_eof():
                raise self._refused(head_errors.classify(error, self._limits)) from None
            # The request is being served already, and fails when it reads the body.
            self.discard()
            body.set_exception(BrokenBodyError("the framing of the body is broken"))
            return _NONE
        if messages:
            self._check_sizes(messages)
            return self._accept(messages)
        return _NONE

    def message_consumed(self) -> None:
        """Resume parsing after a request, as the connection begins to serve it."""
        if self._parsed:
            self._parsed -= 1
            self._consumed()
            self._resume_parsing()

    def pause_reading(self) -> None:
        """Pause aiohttp's parser, unless a plain request is being read."""
        if self._plain.body is None:
            self._pause_reading()

    def discard(self) -> None:
        """Drop all further data."""
        self.discards = True
        self._forget_head()

    def close(self) -> None:
        """Release the connection, and its share of the unfinished heads.

        The parsers refer to the connection. Without these references it is freed at once, not by
        the garbage collector.
        """
        self.discard()
        self._resume_parsing = self._stop_reading = _do_nothing
        self._consumed = self._pause_reading = _do_nothing
        self._feed = _feed_nothing
        self._plain.close()

    def _feed_head(self, data: bytes) -> Messages:
        size = self._head_size + len(data)
        try:
            messages = self._feed(data)[0]
        except Exception as error:
            self._keep(data)
            raise self._refused(head_errors.classify(error, self._limits)) from None
        if messages:
            if size > self._limits.max_head_bytes:
                self._keep(data)
                self._check_sizes(messages)
            return self._accept(messages)
        self._keep(data)
        self._heads.size += len(data)
        self._head_size = size
        if size > self._limits.max_head_bytes:
            raise self._refused(head_errors.head_too_large(self._limits.max_head_bytes))
        if self._heads.size > _ALL_HEADS:
            raise self._refused(head_errors.too_many_heads())
        return _NONE

    def _accept(self, messages: Messages) -> Messages:
        """Do the checks that aiohttp's parser lacks, and store the body that is read next."""
        for number, (message, payload) in enumerate(messages):
            if message.version is not HttpVersion11:
                self._check_version(message)
            if message.upgrade or message.method == "CONNECT":
                changed = message._replace(upgrade=False, should_close=True)
                messages = [*messages[:number], (changed, payload), *messages[number + 1 :]]
        self.messages += len(messages)
        self._parsed += len(messages)
        body = messages[-1][1]
        self._body = None if body.is_eof() else body
        self.began = None
        if self._begun:
            self._forget_head()
        return messages

    def _check_version(self, message: RawRequestMessage) -> None:
        if message.version not in (HttpVersion10, HttpVersion11):
            raise self._refused(head_errors.unsupported_version(), message.path)
        if message.chunked and message.version == HttpVersion10:
            raise self._refused(head_errors.chunked_http_1_0(), message.path)

    def _check_sizes(self, messages: Messages) -> None:
        for message, _ in messages:
            fields = sum(len(name) + len(value) + 4 for name, value in message.raw_headers)
            if len(message.path) + fields > self._limits.max_head_bytes:
                failure = head_errors.head_too_large(self._limits.max_head_bytes)
                raise self._refused(failure, message.path)

    def _refused(self, failure: GatewayError, path: str = "") -> BadHeadError:
        error = BadHeadError(failure, path.partition("?")[0] or self.path)
        self.messages += 1
        self.discard()
        return error

    def _keep(self, data: bytes) -> None:
        """Keep the beginning of a head, without empty lines before it."""
        if len(self._begun) < _KEPT:
            self._begun = (self._begun + data[:_KEPT]).lstrip(b"\r\n")
        if self.began is None and self._begun:
            self.began = self._monotonic()

    def _forget_head(self) -> None:
        self._heads.size -= self._head_size
        self._head_size = 0
        self._begun = b""
        self.began = None

    def _drop(self, data: bytes) -> None:
        self.dropped += len(data)
        if self.dropped > LINGER_BYTES:
            self._stop_reading()


def _do_nothing() -> None:
    pass


def _feed_nothing(data: bytes) -> Messages:
    return _NONE
