"""One HTTP exchange: a request and the state of its response."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol, Self

from aiohttp import HttpVersion11, hdrs
from aiohttp.helpers import parse_content_type
from aiohttp.http import RawRequestMessage
from aiohttp.streams import EmptyStreamReader, StreamReader
from multidict import CIMultiDictProxy, MultiDict, MultiDictProxy
from yarl import URL

from facade.context import Context
from facade.dialects.paths import CallerPaths
from gateway.conversation.v1.conversation_pb2 import DIALECT_UNSPECIFIED, Dialect, Usage
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt
from gateway.inference.v1.inference_pb2 import RouteInfo
from services.common.errors import GatewayError, invalid
from services.common.grpc.authentication import Caller
from services.common.messages.passthrough_answer import AnswerRoute, TokenCounts
from services.common.process.byte_budget import Charge, response_charge
from services.common.process.telemetry.trace_context import TraceContext

_NO_CONTENT_TYPE = "application/octet-stream"
_EMPTY: Mapping[str, str] = {}
_NO_QUERY: MultiDictProxy[str] = MultiDictProxy(MultiDict())


class BrokenBodyError(Exception):
    """Error raised by the reader of a body that is incomplete, or whose framing is broken."""


class AnswerSummary(NamedTuple):
    """The model and provider that served an answer to its end, and the token counts.

    Plain values: a reference to part of a message would keep all of it, which may be megabytes.
    `begun_by` is the model and provider that began the answer, if others continued it. Input tokens
    include those that the provider's cache has read or written.
    """

    model: str
    provider: str
    input_tokens: int
    output_tokens: int
    begun_by: tuple[str, str] | None = None
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0

    @classmethod
    def of(cls, route: RouteInfo | AnswerRoute, usage: Usage | TokenCounts) -> Self:
        """Create a summary; tokens of a provider's cache count as input tokens."""
        created, cached = usage.cache_creation_input_tokens, usage.cache_read_input_tokens
        read = usage.input_tokens + created + cached
        return cls(route.model, route.provider, read, usage.output_tokens, None, cached, created)


class ClientConnection(Protocol):
    """The part of a connection that an exchange uses."""

    @property
    def writing_paused(self) -> bool:
        """Whether the client reads more slowly than data is written."""
        ...

    @property
    def peer_address(self) -> str:
        """The network address of the peer, or "" after it has left."""
        ...

    def write(self, data: bytes) -> None:
        """Write framed bytes.

        Raises:
            ConnectionError: the caller has left.
        """
        ...

    async def drain(self) -> None:
        """Wait while `writing_paused`.

        Raises:
            ConnectionError: the caller has left.
        """
        ...

    def authenticated(self) -> None:
        """Count the connection as authenticated, after a request with a valid API key."""
        ...

    def hold(self, charge: Charge) -> None:
        """Release a charge once the current response has been sent, or the connection is lost."""
        ...

    def holds(self, charge: Charge) -> bool:
        """Return whether a charge is still held."""
        ...


class CheckedHead:
    """Results of the checks of a head, shared by all requests of a connection with this head.

    Attributes:
        api_key: the API key, if its format and header are valid; "" before the check.
        dialect_headers: the headers of the caller's dialect; None before they are selected.
    """

    __slots__ = ("api_key", "dialect_headers")

    def __init__(self) -> None:
        self.api_key = ""
        self.dialect_headers: dict[str, str] | None = None


class Exchange:
    """One HTTP request and its response (RFC 9110, section 3.4).

    Attributes:
        context: settings, metrics and the services.
        connection: the connection of the request.
        method: in upper case.
        path: decoded, without the query.
        route: name of the endpoint, for the log and the metrics.
        path_values: the decoded values of the variables in the endpoint's path.
        headers: headers of the request; names must be looked up in lower case.
        body: the whole body if it was received with the head, until it is read.
        content: reader of the body otherwise.
        is_http_1_1: whether the client supports chunked encoding.
        keep_alive: whether the connection may be reused.
        expect: value of `Expect` in lower case, or None.
        url: the URL of the request, relative or absolute; None if it is `path`.
        checked: results of earlier checks of the same head.
        request_id: identifier of the request.
        api_key: the API key, once it has been verified.
        caller: the owner of the key.
        counted_user: the user whose requests in progress include this one, or "".
        body_charge: the bytes that are reserved for a large body until the request has been
            answered; None for any other.
        cors_headers: headers for pages of other origins.
        has_begun: whether part of the response has been written.
        model: the model that the request names.
        dialect: the caller's dialect, of a request to a model.
        caller_paths: translates canonical field paths into the caller's; None until the body is
            parsed.
        answer_summary: the model that served the answer, with token counts.
        failure: the error code of the response.
        failed_attempts: the attempts at providers that failed before the response.
        added_headers: headers of the response that tell how the request was served.
        began: when it arrived, by the monotonic clock.
        first_content_s: seconds until the first content of a streamed answer; None before.
        trace: the trace that it is part of, if any.
        labels: metadata of its calls with its tags and end user.
        takes_headers: takes the headers of a streamed response in place of a head, if its
            connection carries messages; None otherwise.
    """

    path_values: Mapping[str, str] = _EMPTY
    request_id = ""
    api_key = ""
    counted_user = ""
    cors_headers: Mapping[str, str] = _EMPTY
    has_begun = False
    began = 0.0
    first_content_s: float | None = None
    trace: TraceContext | None = None
    model: str | None = None
    answer_summary: AnswerSummary | None = None
    failure: str | None = None
    failed_attempts: Sequence[Attempt] = ()
    added_headers: Mapping[str, str] = _EMPTY
    caller: Caller | None = None
    body_charge: Charge | None = None
    dialect: Dialect.ValueType = DIALECT_UNSPECIFIED
    caller_paths: CallerPaths | None = None
    labels: Sequence[tuple[str, str]] = ()
    takes_headers: Callable[[Mapping[str, str]], None] | None = None

    def __init__(
        self,
        context: Context,
        connection: ClientConnection,
        method: str,
        path: str,
        route: str,
        headers: dict[str, str] | CIMultiDictProxy[str],
        body: bytes | None = None,
        content: StreamReader | None = None,
        checked: CheckedHead | None = None,
        *,
        is_http_1_1: bool = True,
        keep_alive: bool = True,
        expect: str | None = None,
        url: URL | None = None,
    ) -> None:
        self.context = context
        self.connection = connection
        self.method = method
        self.path = path
        self.route = route
        self.headers = headers
        self.body = body
        self.content = content
        self.is_http_1_1 = is_http_1_1
        self.keep_alive = keep_alive
        self.expect = expect
        self.url = url
        self.checked = checked or CheckedHead()

    def joined_header(self, name: str) -> str:
        """Return all values of a header, separated by commas; "" without any."""
        if isinstance(self.headers, dict):
            return self.headers.get(name, "")
        return ",".join(self.headers.getall(name, ()))

    def charge(self) -> Charge:
        """Return a charge of the caller's share of buffered bytes, to be released by the caller."""
        assert self.caller is not None, "it has been authenticated"
        return Charge(self.context.budget, self.caller.user_id, self.body_charge)

    @contextmanager
    def reading_response(self) -> Iterator[None]:
        """Charge what is read for the response, until the response has been sent."""
        charge = self.charge()
        self.connection.hold(charge)
        token = response_charge.set(charge)
        try:
            yield
        finally:
            response_charge.reset(token)
            if not self.connection.holds(charge):
                charge.release()  # the caller has left meanwhile

    def release_body(self) -> None:
        """Release the bytes that are reserved for the body."""
        if self.body_charge is not None:
            self.body_charge.release()
            self.body_charge = None

    def stream_timing(self, seconds: float) -> tuple[float, float | None] | None:
        """Return the seconds to the first content of a streamed answer, and per token after it.

        Return None without streamed content. The second value is None for a stream of one token.

        Args:
            seconds: seconds until its end.
        """
        first_s, summary = self.first_content_s, self.answer_summary
        if first_s is None or summary is None:
            return None
        more = summary.output_tokens - 1
        return first_s, (seconds - first_s) / more if more > 0 else None

    def take_body(self, max_size: int, setting: str = "limits.max_body_bytes") -> bytes | None:
        """Return the body if it has been received completely, else None; to be called once.

        Args:
            max_size: maximum size in bytes.
            setting: the name of that limit.

        Raises:
            GatewayError: too_large; invalid, the framing is broken.
        """
        body, self.body = self.body, None
        if body is None:
            assert self.content is not None, "the body is taken once"
            if not self.content.is_eof():
                return None
            try:
                body = self.content.read_nowait()
            except BrokenBodyError:
                raise broken_body() from None
        if len(body) > max_size:
            raise body_too_large(max_size, setting)
        return body

    @property
    def is_received(self) -> bool:
        """Whether the body has been received completely."""
        return self.content is None or self.content.is_eof()

    @property
    def has_body(self) -> bool:
        """Whether the request has a body, even if it has been read."""
        return not isinstance(self.content, EmptyStreamReader)

    @property
    def query(self) -> MultiDictProxy[str]:
        """The decoded parameters of the query."""
        return _NO_QUERY if self.url is None else self.url.query

    def header_lines(self, name: str) -> list[str]:
        """Return the values of all header fields with a name, which is in lower case."""
        if isinstance(self.headers, dict):
            return [self.headers[name]] if name in self.headers else []
        return self.headers.getall(name, [])

    @property
    def content_length(self) -> int:
        """The value of `Content-Length`, or 0 without the header."""
        return int(self.headers.get("content-length", 0))

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters."""
        value = self.headers.get("content-type")
        return _NO_CONTENT_TYPE if value is None else parse_content_type(value)[0]


def body_too_large(max_size: int, setting: str) -> GatewayError:
    """Return the error of a body of more than `max_size` bytes; `setting` names the limit."""
    return GatewayError(
        errors_pb2.REASON_TOO_LARGE,
        f"the body is larger than {max_size:,} bytes",
        limit=setting,
    )


def broken_body() -> GatewayError:
    """Return the error of a body that is incomplete, or whose framing is broken."""
    return invalid(
        "body", "body: incomplete or malformed; check Content-Length or the chunked encoding"
    )


def exchange_of(
    message: RawRequestMessage,
    content: StreamReader,
    context: Context,
    connection: ClientConnection,
) -> Exchange:
    """Return the exchange of a request that aiohttp has parsed; its route is not known yet."""
    url = message.url
    if url.absolute:
        # The target may be an absolute URL, for any host (RFC 9112, section 3.2.2).
        url = url.relative()
    headers = message.headers
    expect = None
    if hdrs.EXPECT in headers:
        expect = ",".join(headers.getall(hdrs.EXPECT)).strip().lower()
    return Exchange(
        context,
        connection,
        message.method,
        url.path,
        "unknown",
        headers,
        None,
        content,
        url=url,
        is_http_1_1=message.version >= HttpVersion11,
        keep_alive=not message.should_close,
        expect=expect,
    )
