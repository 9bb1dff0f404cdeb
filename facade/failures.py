"""Failures of requests: the error that a caller is told of, and the response that tells of it."""

import logging
from http import HTTPStatus

import grpc
from aiohttp import web

from facade import credentials, dialects, http_errors
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse
from facade.served_headers import UPSTREAM_REQUEST_ID
from gateway.errors.v1 import errors_pb2
from services.common import errors
from services.common.errors import GatewayError

log = logging.getLogger(__name__)

# Below 500 these pass by themselves.
_RETRYABLE = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
# The operator has to mend a provider's key or address first.
_FOR_THE_OPERATOR = frozenset({errors_pb2.REASON_UPSTREAM_AUTH, errors_pb2.REASON_LOOP_DETECTED})


def to_gateway_error(error: Exception, exchange: Exchange) -> GatewayError:
    """Return the error that a caller is told of for any exception; an unforeseen one is logged."""
    if isinstance(error, GatewayError):
        return error
    if isinstance(error, grpc.aio.AioRpcError):
        failure = errors.from_rpc_error(error)
        # Only of a parsed body are the caller's names of fields other than the services'.
        paths = exchange.caller_paths
        return failure if paths is None else paths.translate(failure)
    if isinstance(error, web.RequestPayloadError):
        return errors.invalid("body", "body: ends before its HTTP framing says, or breaks it")
    if isinstance(error, web.HTTPException):
        return http_errors.from_http_exception(error, exchange.method, exchange.path)
    log.error("unforeseen failure", exc_info=error)
    return errors.internal()


def failed(exchange: Exchange, error: GatewayError) -> JsonResponse:
    """Return the response that tells of an error, noted for the log and counted by its limit."""
    exchange.failure = error.code
    if error.limit:
        exchange.context.metrics.limits_reached.labels(error.limit).inc()
    return error_response(exchange, error)


def error_response(exchange: Exchange, error: GatewayError) -> JsonResponse:
    """Return the response that tells of an error, in the format of the endpoint."""
    shape = credentials.shape_of(exchange.headers, credentials.rules_for(exchange.path))
    status, body = dialects.render_error(shape, error, exchange.request_id)
    headers = dict(error.headers)
    if error.upstream_request_id:
        headers[UPSTREAM_REQUEST_ID] = error.upstream_request_id
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if not _may_retry(error, status):
        headers["x-should-retry"] = "false"  # which the official SDKs follow
    return JsonResponse(body, headers, status)


def _may_retry(error: GatewayError, status: int) -> bool:
    """Return whether the same request may be answered when it is sent again."""
    if len(error.attempts) > 1:
        return False  # the gateway has retried already; retries of clients would multiply that
    if error.reason in _FOR_THE_OPERATOR:
        return False
    return status in _RETRYABLE or (status >= 500 and status != HTTPStatus.NOT_IMPLEMENTED)
