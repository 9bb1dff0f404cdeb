"""What happens around every request.

`observe` is outermost: it gives the request its id, turns every failure into an
answer of the endpoint's own shape, counts and logs. `authenticate` lets nobody in
without a key, before a body is read.
"""

import asyncio
import logging
import re
from functools import partial
from http import HTTPStatus

import grpc
from aiohttp import hdrs, web
from multidict import CIMultiDict

from facade import credentials, dialects, draining, problems
from facade.access_details import details_of
from facade.context import (
    API_KEY,
    CALLER,
    CALLER_PATHS,
    CONTEXT,
    CORS_HEADERS,
    FAILURE,
    HAS_BEGUN,
    REQUEST_ID,
)
from facade.http.connection import Connection
from facade.http.heads import check_head
from facade.http.routing import Handler, RoutedRequest
from facade.served import UPSTREAM_REQUEST_ID
from gateway.errors.v1 import errors_pb2
from services.common import errors, logs
from services.common.errors import GatewayError
from services.common.hops import HOPS_KEY, MAX_HOPS, loop_detected, parse_hops
from services.common.ids import MAX_REQUEST_ID, new_request_id

log = logging.getLogger(__name__)

# Below 500 these pass by themselves.
_RETRYABLE = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
# The operator has to mend a provider's key or address first.
_FOR_THE_OPERATOR = frozenset({errors_pb2.REASON_UPSTREAM_AUTH, errors_pb2.REASON_LOOP_DETECTED})
_REQUEST_ID = re.compile(rf"[A-Za-z0-9._:/+=-]{{1,{MAX_REQUEST_ID}}}", re.ASCII)
# Addresses that clients are given; some ask for their head before anything else.
BASE_PATHS = tuple(
    f"{path}{slash}"
    for path in ("/beta", "/beta/v1", "/coding", "/coding/v1")
    for slash in ("", "/")
)
PUBLIC = frozenset({"/healthz", "/readyz", "/openapi.json", "/docs", *BASE_PATHS})


@web.middleware
async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Name the request, answer its failures, count and log it."""
    context = request.app[CONTEXT]
    began = context.source.monotonic()
    given = request.headers.get("x-request-id", "")
    request_id = given if _REQUEST_ID.fullmatch(given) else new_request_id()
    request[REQUEST_ID] = request_id
    logs.request_id.set(request_id)
    route = _route_of(request)
    status = 499
    context.metrics.live.inc()
    task = context.drain.enter(request)
    try:
        try:
            response = await handler(request)
        except ConnectionError:
            # The caller left while the answer was written: nobody is there to tell.
            raise
        except Exception as error:
            # No name here for the failure: its trace has this frame, and the two would keep
            # each other, with the body that was refused, until the garbage is collected.
            response = _refuse(request, error)
        except asyncio.CancelledError:
            if HAS_BEGUN in request or not context.drain.take_over():
                raise
            response = _failed(request, draining.stopping())
        if context.drain.is_draining:
            response.force_close()
        status = response.status
        return response
    finally:
        context.drain.leave(task)
        seconds = context.source.monotonic() - began
        context.metrics.live.dec()
        context.metrics.answered(route, status, seconds)
        context.access_log.answered(
            request.method, route, status, seconds, partial(details_of, request, status)
        )


@web.middleware
async def authenticate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a request without a key of ours, or with a wrong version."""
    check_head(request)
    if request.path in PUBLIC or request.match_info.http_exception is not None:
        return await handler(request)
    rules = credentials.rules_for(request.path)
    key = credentials.key_of(request.headers, rules)
    caller = await request.app[CONTEXT].identify(key)
    connection = request.protocol
    if isinstance(connection, Connection):
        connection.authenticated()
    credentials.check_version(request.headers, rules)
    passed = request.headers.get(HOPS_KEY)
    if passed is not None and parse_hops(passed) > MAX_HOPS:
        raise loop_detected()
    request[API_KEY] = key
    request[CALLER] = caller
    return await handler(request)


def _refuse(request: web.Request, error: Exception) -> web.Response:
    return _failed(request, told(error, request))


async def name_answer(request: web.Request, response: web.StreamResponse) -> None:
    """Put the request's id on its answer, under the name either kind of client looks for.

    The answer does not name the server. One that comes before the end of its request closes
    the connection.
    """
    request[HAS_BEGUN] = True
    headers = response.headers
    request_id = request.get(REQUEST_ID)
    if request_id is not None:
        headers["x-request-id"] = headers["request-id"] = request_id
    headers.popall(hdrs.SERVER, None)
    if CORS_HEADERS in request:
        headers.update(request[CORS_HEADERS])
    if not request.content.is_eof():
        response.force_close()
        headers[hdrs.CONNECTION] = "close"


def told(error: Exception, request: web.Request) -> GatewayError:
    """Return what a caller is told of any failure; what nobody foresaw is logged."""
    if isinstance(error, GatewayError):
        return error
    if isinstance(error, grpc.aio.AioRpcError):
        failure = errors.from_rpc_error(error)
        # None of a service's names of fields is the caller's own.
        return request[CALLER_PATHS].translate(failure) if CALLER_PATHS in request else failure
    if isinstance(error, web.RequestPayloadError):
        return errors.invalid("body", "body: ends before its HTTP framing says, or breaks it")
    if isinstance(error, web.HTTPException):
        return problems.from_http_exception(error, request)
    log.error("unforeseen failure", exc_info=error)
    return errors.internal()


def error_response(request: web.Request, error: GatewayError) -> web.Response:
    """Return the answer that tells of a failure, in the endpoint's own shape."""
    shape = credentials.shape_of(request.headers, credentials.rules_for(request.path))
    status, body = dialects.render_error(shape, error, request[REQUEST_ID])
    headers: CIMultiDict[str] = CIMultiDict(error.headers)
    if error.upstream_request_id:
        headers[UPSTREAM_REQUEST_ID] = error.upstream_request_id
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if not _may_retry(error, status):
        headers["x-should-retry"] = "false"  # which the official SDKs follow
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


def _failed(request: web.Request, failure: GatewayError) -> web.Response:
    request[FAILURE] = failure.code
    if failure.limit:
        request.app[CONTEXT].metrics.limits_reached.labels(failure.limit).inc()
    return error_response(request, failure)


def _may_retry(error: GatewayError, status: int) -> bool:
    """Return whether the same request may be answered when it is sent again."""
    if len(error.attempts) > 1:
        return False  # the gateway has retried already; retries of clients would multiply that
    if error.reason in _FOR_THE_OPERATOR:
        return False
    return status in _RETRYABLE or (status >= 500 and status != HTTPStatus.NOT_IMPLEMENTED)


def _route_of(request: web.Request) -> str:
    if isinstance(request, RoutedRequest):
        return request.route.name
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "unknown"
