"""The request log: an entry for each request with an API key.

With the log, `LoggedRequests.serve` takes the place of `request_context`. Without it, requests do
not pass through this module at all.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from itertools import islice
from typing import Protocol

from facade.dialects.parsed_request import ParsedRequest
from facade.http.exchange import ClientConnection, Exchange
from facade.http.responses import Response, WholeResponse
from facade.parsing import BodyFormat, Option, ParserPool
from facade.request_context import request_context
from gateway.accounts.v1.usage_pb2 import UsageLabel
from gateway.requests.v1.requests_pb2 import LoggedRequest, RequestDetails
from services.common.grpc.authentication import ADMINISTRATOR
from services.common.labels import labels_in
from services.common.messages.request_entry import RequestEntry

# Status of a request whose client left before the end of the response.
_CLIENT_LEFT = 499
# The headers that the gateway adds by itself, and bounds of what is stored of them.
_ADDED = (
    "x-gateway-",
    "x-memory-",
    "x-upstream-request-id",
    "x-should-retry",
    "retry-after",
    "age",
)
_MAX_HEADERS, _MAX_HEADER = 32, 4096
_MAX_ATTEMPTS = 64

# The entry of the request that the current task serves.
_current: ContextVar[RequestEntry | None] = ContextVar("logged_request", default=None)


class RequestLog(Protocol):
    """Takes the entries of requests; never waits.

    Attributes:
        has_bodies: whether bodies are logged.
    """

    has_bodies: bool

    def begin(self, request_id: str) -> RequestEntry | None:
        """Return the entry of a request that begins, or None if it is not logged."""

    def end(self, entry: RequestEntry, logged: LoggedRequest | None) -> None:
        """End an entry with what is stored of it, or without if it is not logged after all."""


class LoggedRequests:
    """Serves requests as `request_context` does, and logs them.

    Args:
        log: takes the entries.
    """

    def __init__(self, log: RequestLog) -> None:
        self._log = log

    async def serve(
        self,
        exchange: Exchange,
        handler: Callable[[Exchange], Awaitable[Response]],
        *,
        needs_key: bool = False,
    ) -> Response:
        """Serve a request, and log it if it has a valid API key; see `request_context`."""
        status = _CLIENT_LEFT
        response: Response | None = None
        try:
            response = await request_context(
                exchange, partial(self._handle, handler), needs_key=needs_key
            )
            status = response.status
            return response
        finally:
            entry = _current.get()
            if entry is not None:
                if isinstance(response, WholeResponse) and entry.request is not None:
                    _capture_answer(entry, response.body)
                entry.trace = exchange.trace
                self._log.end(entry, _logged(exchange, status))

    async def _handle(
        self, handler: Callable[[Exchange], Awaitable[Response]], exchange: Exchange
    ) -> Response:
        entry = self._log.begin(exchange.request_id)
        _current.set(entry)
        if entry is not None and self._log.has_bodies:
            exchange.connection = _RecordingConnection(exchange.connection, entry)
        return await handler(exchange)


class RecordingParserPool(ParserPool):
    """A parser that captures the bodies of requests to models for the log."""

    async def parse(
        self, body_format: BodyFormat, held: list[bytes], **options: Option
    ) -> ParsedRequest:
        """Capture a body, and parse it; see `ParserPool.parse`."""
        entry = _current.get()
        if entry is not None and entry.request is not None:
            entry.request.add(held[0])
        return await super().parse(body_format, held, **options)


class _RecordingConnection:
    """A connection that captures the streamed answers that are written to it."""

    def __init__(self, connection: ClientConnection, entry: RequestEntry) -> None:
        self._connection = connection
        self._entry = entry
        self.drain = connection.drain
        self.authenticated = connection.authenticated
        self.hold = connection.hold
        self.holds = connection.holds

    @property
    def writing_paused(self) -> bool:
        return self._connection.writing_paused

    @property
    def peer_address(self) -> str:
        return self._connection.peer_address

    def write(self, data: bytes) -> None:
        self._connection.write(data)
        _capture_answer(self._entry, data)


def _capture_answer(entry: RequestEntry, data: bytes) -> None:
    """Add bytes of an answer to an entry whose request is one to a model."""
    if entry.request is not None and entry.response is not None and entry.request.content:
        entry.response.add(data)


def _logged(exchange: Exchange, status: int) -> LoggedRequest | None:
    """Return what is stored of a request; None without an API key."""
    caller = exchange.caller
    if caller is None or caller.user_id == ADMINISTRATOR:
        return None
    seconds = exchange.context.clock.monotonic() - exchange.began
    logged = LoggedRequest(
        request_id=exchange.request_id,
        user_id=caller.user_id,
        team_id=caller.team_id,
        key_id=caller.key_id,
        endpoint=f"{exchange.method} {exchange.route}",
        status=status,
        error_code=exchange.failure or "",
        requested_model=_encodable(exchange.model or ""),
        duration_ms=round(1000 * seconds),
    )
    if exchange.labels and (usage := exchange.context.labels) is not None:
        labels = labels_in(exchange.labels, usage.tags, has_end_users=usage.end_users)
        logged.labels.extend(UsageLabel(name=name, value=labels[name]) for name in sorted(labels))
    if exchange.first_content_s is not None:
        logged.first_content_ms = round(1000 * exchange.first_content_s)
    if (summary := exchange.answer_summary) is not None:
        logged.model, logged.provider = _encodable(summary.model), summary.provider
        logged.input_tokens = summary.input_tokens
        logged.output_tokens = summary.output_tokens
    if (details := _details(exchange)) is not None:
        logged.details.CopyFrom(details)
    return logged


def _details(exchange: Exchange) -> RequestDetails | None:
    """Return how a request was served; None if nothing is known."""
    headers = {
        name.lower(): value[:_MAX_HEADER]
        for name, value in exchange.added_headers.items()
        if name.lower().startswith(_ADDED)
    }
    if not headers and not exchange.failed_attempts:
        return None
    return RequestDetails(
        failed_attempts=exchange.failed_attempts[:_MAX_ATTEMPTS],
        headers=dict(islice(headers.items(), _MAX_HEADERS)),
    )


def _encodable(name: str) -> str:
    """Return a name without lone surrogates, which JSON can contain and a message cannot."""
    return name.encode(errors="replace").decode()
