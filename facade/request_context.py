"""Common handling of all requests: id, errors, metrics, log line, API key, and their end.

`request_context` assigns the request id, converts errors to responses in the endpoint's format,
counts the request and logs it. `authenticate` rejects a request without a valid API key, and one of
a user with too many requests in progress, before its body is read.

When the facade stops: 1. Idle connections are closed at once, the others after their response.
2. Requests, including those whose body is still being received, have `limits.drain_s` to finish.
3. The remaining ones fail with 503; a started stream ends with an error event, and any other
started response is cut off.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol

from facade import credentials
from facade.failures import failed, to_gateway_error
from facade.http.exchange import Exchange
from facade.http.responses import Response
from facade.reports import details_of
from facade.sessions import CSRF_HEADER, session_token
from facade.tracing import begin_trace, end_trace
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller
from services.common.grpc.hops import HOPS_KEY, MAX_HOPS, loop_detected, parse_hops
from services.common.ids import MAX_REQUEST_ID, new_request_id
from services.common.process import logs
from services.common.process.loop_shares import user_of_task
from services.common.process.telemetry.trace_context import TRACEPARENT_KEY

# Seconds for cancelled requests to send their last bytes, and for clients to read them.
_CANCELLED_S = 0.5
_READING_S = 0.2
_RETRY_AFTER_S = 1  # for a user who has too many requests
_REQUEST_ID = re.compile(rf"[A-Za-z0-9._:/+=-]{{1,{MAX_REQUEST_ID}}}", re.ASCII)


class Connection(Protocol):
    """The part of a connection that draining uses."""

    def end(self) -> None:
        """Close the connection, or a socket once its requests have been answered."""
        ...


class RequestsInProgress:
    """The requests that a process serves.

    Args:
        most_of_user: how many of one user there may be.

    Attributes:
        is_draining: whether the facade is stopping.
    """

    def __init__(self, most_of_user: int) -> None:
        self.is_draining = False
        self._most_of_user = most_of_user
        self._of_users: dict[str, int] = {}
        self._in_progress: dict[asyncio.Task[object], object] = {}
        self._cancelled: set[asyncio.Task[object]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._in_progress)

    def enter(self, connection: object) -> "asyncio.Task[object]":
        """Register the current task as serving a request of a connection, and return the task."""
        loop = self._loop
        if loop is None:
            # Queried at the first request: it takes a system call.
            loop = self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        self._in_progress[task] = connection
        return task

    def count_for(self, user_id: str) -> None:
        """Count a request for its user, until `leave`.

        Raises:
            GatewayError: rate_limited, the user has as many requests in progress as allowed.
        """
        count = self._of_users.get(user_id, 0)
        if count >= self._most_of_user:
            raise GatewayError(
                errors_pb2.REASON_RATE_LIMITED,
                f"{count:,} of your requests are in progress, the maximum; try again when one has "
                "finished",
                retry_after_s=_RETRY_AFTER_S,
                limit="limits.max_parallel_requests_per_user",
            )
        self._of_users[user_id] = count + 1

    def leave(self, task: "asyncio.Task[object]", user_id: str) -> None:
        """Unregister a task; `user_id` is the user for whom its request was counted, or ""."""
        del self._in_progress[task]
        if not user_id:
            return
        count = self._of_users[user_id]
        if count == 1:
            del self._of_users[user_id]
        else:
            self._of_users[user_id] = count - 1

    def uncancel(self) -> bool:
        """Return whether a drain cancelled the current task, and uncancel it if so."""
        task = asyncio.current_task()
        if task is None or task not in self._cancelled:
            return False
        self._cancelled.discard(task)
        task.uncancel()
        return True

    async def finish(self, drain_s: float, connections: Iterable[Connection]) -> None:
        """Wait for the requests in progress to finish; cancel the rest."""
        self.is_draining = True
        # Let data already read from sockets become requests.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        busy = set(self._in_progress.values())
        for connection in connections:
            if connection not in busy:
                connection.end()
        if await self._ended(drain_s):
            return
        self._cancelled |= self._in_progress.keys()
        for task in self._cancelled:
            task.cancel()
        await self._ended(_CANCELLED_S)
        # Closing a connection while its client is sending would discard the response.
        await asyncio.sleep(_READING_S)

    async def _ended(self, within_s: float) -> bool:
        """Wait until no request is in progress; return False on timeout."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within_s
        while self._in_progress and (left := end - loop.time()) > 0:
            await asyncio.wait(set(self._in_progress), timeout=left)
        return not self._in_progress


def stopping() -> GatewayError:
    """Return the error for requests interrupted by shutdown: 503."""
    return GatewayError(
        errors_pb2.REASON_UNAVAILABLE,
        "the gateway is stopping; try again",
        limit="limits.drain_s",
    )


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
    given_id = exchange.headers.get("x-request-id")
    exchange.request_id = new_request_id() if given_id is None else _request_id(given_id)
    logs.request_id.set(exchange.request_id)
    span = None
    if context.telemetry is not None or TRACEPARENT_KEY in exchange.headers:
        span = begin_trace(exchange)
    status = 499
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


def _request_id(given_id: str) -> str:
    """Return the client's `x-request-id` if it is valid, else a new id."""
    return given_id if _REQUEST_ID.fullmatch(given_id) else new_request_id()


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
    key = CSRF_HEADER in headers and session_token(
        headers, exchange.context.settings.console.is_secure
    )
    key = key or credentials.key_of(headers, rules)
    caller = await exchange.context.identify(key)
    exchange.connection.authenticated()
    credentials.check_version(headers, rules)
    passed = headers.get(HOPS_KEY)
    if passed is not None and parse_hops(passed) > MAX_HOPS:
        raise loop_detected()
    exchange.checked.api_key = key
    return caller
