"""Requests that the gateway makes by itself for a caller, such as those of batches.

A request passes through the same functions as one that was received: the handler of its endpoint,
limits, fallback, usage, metrics, the access log and the request log. Only its connection is
missing.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

import orjson

from facade.context import Context
from facade.dispatch import Serve
from facade.endpoints import ENDPOINTS
from facade.failures import failed, to_gateway_error
from facade.http.exchange import Exchange
from facade.http.held_charges import HeldCharges
from facade.http.responses import Response, WholeResponse
from facade.request_context import authenticate
from facade.route_headers import changes_in
from gateway.errors.v1 import errors_pb2
from services.common.errors import internal
from services.common.ids import new_request_id
from services.common.messages.deferred_call import DeferredCall, RenderedCall, deferred_call
from services.common.text.texts import parse_digits

_POST: Final = "POST"


class InternalResponse(NamedTuple):
    """The response to an internal request.

    Attributes:
        status: its HTTP status.
        body: its body; an object has a member `gateway` if something of the request was left out
            or converted.
        request_id: the id of the request.
        retry_after_s: the value of `Retry-After`; None without the header.
        tokens: input, output and cached tokens of the answer.
    """

    status: int
    body: bytes
    request_id: str
    retry_after_s: float | None
    tokens: tuple[int, int, int]


class InternalRequests:
    """Makes requests.

    Args:
        context: the dependencies of the handlers.
        serve: serves a request with its handler.
    """

    def __init__(self, context: Context, serve: Serve) -> None:
        self._context = context
        self._serve = serve
        self._handlers = {spec.path: spec.handler for spec in ENDPOINTS if spec.method == _POST}

    async def post(
        self,
        path: str,
        key: str,
        headers: Mapping[str, str],
        body: bytes,
        deferred: DeferredCall | None = None,
    ) -> InternalResponse:
        """Make a POST request with a JSON body, and return its response, whatever its status.

        Args:
            path: the path of the endpoint.
            key: the key of the caller, or one that stands for it.
            headers: headers, with names in lower case.
            body: the body.
            deferred: the answer of the provider, if it is known.
        """
        connection = _NoConnection()
        exchange = self._exchange(connection, path, key, headers, body)
        deferring = deferred_call.set(deferred)
        response: Response
        try:
            response = await self._serve(exchange, self._handlers[path], needs_key=True)
        except ConnectionError:
            response = failed(exchange, internal())
        finally:
            deferred_call.reset(deferring)
            connection.release()
        if not isinstance(response, WholeResponse):
            response = failed(exchange, internal())
        summary = exchange.answer_summary
        tokens = (0, 0, 0)
        if summary is not None:
            tokens = (summary.input_tokens, summary.output_tokens, summary.cache_read_tokens)
        return InternalResponse(
            response.status,
            _with_changes(response),
            exchange.request_id,
            _seconds(response.headers.get("Retry-After")),
            tokens,
        )

    async def render(
        self, path: str, key: str, headers: Mapping[str, str], body: bytes
    ) -> RenderedCall | None:
        """Return what the provider of a POST request is to be sent; the request is not made.

        None if the gateway has to run the request by itself, or if it is invalid. The arguments are
        those of `post`.

        Raises:
            GatewayError: rate_limited, a limit of the caller does not admit the request now.
        """
        connection = _NoConnection()
        exchange = self._exchange(connection, path, key, headers, body)
        exchange.request_id = new_request_id()
        requests, call = self._context.requests, DeferredCall()
        deferring = deferred_call.set(call)
        task = requests.enter(connection)
        try:
            await authenticate(exchange)
            await self._handlers[path](exchange)
        except Exception as error:
            failure = to_gateway_error(error, exchange)
            if call.rendered is None and failure.reason == errors_pb2.REASON_RATE_LIMITED:
                raise failure from None
        finally:
            requests.leave(task, exchange.counted_user)
            deferred_call.reset(deferring)
            if exchange.body_charge is not None:
                exchange.release_body()
            connection.release()
        return call.rendered

    def _exchange(
        self,
        connection: "_NoConnection",
        path: str,
        key: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> Exchange:
        sent = {**headers, "content-type": "application/json"}
        exchange = Exchange(self._context, connection, _POST, path, path, sent, body)
        exchange.checked.api_key = key
        return exchange


def _with_changes(response: WholeResponse) -> bytes:
    """Return a body with a member for what the headers, which nobody reads, say was left out."""
    changes, body = changes_in(response.headers), response.body
    if not changes or not body.startswith(b"{"):
        return body
    return b'%b,"gateway":%b}' % (body[: body.rindex(b"}")], orjson.dumps(changes))


class _NoConnection(HeldCharges):
    """A connection that nobody reads; see `ClientConnection`."""

    writing_paused = False
    peer_address = ""

    def write(self, data: bytes) -> None:
        """Discard data."""

    async def drain(self) -> None:
        """Return at once."""

    def authenticated(self) -> None:
        """Do nothing."""


def _seconds(value: str | None) -> float | None:
    number = None if value is None else parse_digits(value)
    return None if number is None else float(number)


# Makes a request; `InternalRequests.post`.
Post = Callable[
    [str, str, Mapping[str, str], bytes, DeferredCall | None], Awaitable[InternalResponse]
]
# Renders the call of a provider for a request; `InternalRequests.render`.
RenderRequest = Callable[[str, str, Mapping[str, str], bytes], Awaitable[RenderedCall | None]]
