"""Common handling of all requests: id, errors, metrics, log line and API key.

`request_context` assigns the request id, converts errors to responses in the endpoint's format,
counts the request and logs it. `authenticate` rejects a request without a valid API key, and one of
a user with too many requests in progress, before its body is read.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial

from facade import credentials
from facade.access_log import details_of
from facade.failures import failed, to_gateway_error
from facade.http.exchange import Exchange
from facade.http.responses import Response
from facade.requests_in_progress import stopping
from facade.tracing import begin_trace, end_trace
from services.common.grpc.authentication import Caller
from services.common.grpc.hops import HOPS_KEY, MAX_HOPS, loop_detected, parse_hops
from services.common.ids import MAX_REQUEST_ID, new_request_id
from services.common.process import logs
from services.common.process.loop_shares import user_of_task
from services.common.process.telemetry.trace_context import TRACEPARENT_KEY

_REQUEST_ID = re.compile(rf"[A-Za-z0-9._:/+=-]{{1,{MAX_REQUEST_ID}}}", re.ASCII)


async def request_context(
    exchange: Exchange,
    handler: Callable[[Exchange], Awaitable[Response]],
    *,
    needs_key: bool = False,
) -> Response:
    """Handle a request: set its id, convert errors to responses, count and log it.

    With `needs_key` a request without a valid API key is rejected; see `authenticate`.

    Raises:
        ConnectionError: the client has left, or has part of a response that cannot be completed.
        asyncio.CancelledError: the client has left, or the facade stops after the response began.
    """
    context = exchange.context
    began = exchange.began = context.clock.monotonic()
    if context.cors is not None:
        exchange.cors_headers = context.cors.headers(exchange.headers.get("origin", ""))
    exchange.request_id = _request_id(exchange)
    logs.request_id.set(exchange.request_id)
    span = None
    if context.telemetry is not None or TRACEPARENT_KEY in exchange.headers:
        span = begin_trace(exchange)
    status = 499
    context.metrics.live.inc()
    task = context.requests.enter(exchange.connection)
    response: Response
    try:
        try:
            if needs_key:
                await authenticate(exchange)
            response = await handler(exchange)
        except ConnectionError:
            raise  # the client left while the response was written
        except Exception as error:
            # Without a local name for the exception: its traceback refers to this frame, and the
            # cycle would keep the rejected body until garbage collection.
            response = failed(exchange, to_gateway_error(error, exchange))
            if exchange.has_begun:
                status = response.status
                raise ConnectionResetError("the response has begun") from None
        except asyncio.CancelledError:
            if exchange.has_begun or not context.requests.uncancel():
                raise
            response = failed(exchange, stopping())
        if context.requests.is_draining and not exchange.has_begun:
            # A client that has not read `connection: close` may use the connection again.
            exchange.keep_alive = False
        status = response.status
        return response
    finally:
        context.requests.leave(task, exchange.counted_user)
        # The traceback of an exception that cancels it refers to this frame.
        del task
        seconds = context.clock.monotonic() - began
        if exchange.body_charge is not None:
            exchange.release_body()
        if span is not None:
            end_trace(exchange, span, status, seconds)
        context.access_log.answered(
            exchange.method, exchange.route, status, seconds, partial(details_of, exchange, status)
        )
        context.metrics.answered(exchange.route, status, seconds)
        context.metrics.live.dec()


def _request_id(exchange: Exchange) -> str:
    """Return the client's `x-request-id` if it is valid, else a new id."""
    given = exchange.headers.get("x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given
    return new_request_id()


async def authenticate(exchange: Exchange, rules: credentials.Rules | None = None) -> None:
    """Reject a request without a valid API key, or with a wrong version.

    Args:
        exchange: the request.
        rules: the rules of its path, if the caller has looked them up.

    Raises:
        GatewayError: as `credentials.key_of`, `Context.identify` and
            `credentials.check_version`; loop_detected, the request has passed through too many
            gateways; rate_limited, too many requests of the user are in progress.
    """
    checked, context = exchange.checked, exchange.context
    if checked.api_key:
        caller = await context.identify(checked.api_key)
    else:
        caller = await _check(exchange, rules or credentials.rules_for(exchange.path))
    exchange.api_key = checked.api_key
    exchange.caller = caller
    user_of_task.set(caller.user_id)
    context.requests.count_for(caller.user_id)
    exchange.counted_user = caller.user_id


async def _check(exchange: Exchange, rules: credentials.Rules) -> Caller:
    """Check a head that has not been checked before; return the caller."""
    headers = exchange.headers
    key = credentials.key_of(headers, rules)
    caller = await exchange.context.identify(key)
    exchange.connection.authenticated()
    credentials.check_version(headers, rules)
    passed = headers.get(HOPS_KEY)
    if passed is not None and parse_hops(passed) > MAX_HOPS:
        raise loop_detected()
    exchange.checked.api_key = key
    return caller
