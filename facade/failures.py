"""Error handling of requests: conversion of exceptions, and error responses."""

import logging
from http import HTTPStatus

import grpc

from facade import credentials
from facade.dialects.errors import render_error
from facade.http.exchange import BrokenBodyError, Exchange
from facade.http.responses import JsonResponse
from facade.route_headers import UPSTREAM_REQUEST_ID, set_caller_limits
from gateway.errors.v1 import errors_pb2
from services.common import errors
from services.common.errors import GatewayError

log = logging.getLogger(__name__)

# Statuses below 500 that are transient.
_RETRYABLE = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
# The operator has to fix a provider's key or URL first, or raise a budget.
_FOR_THE_OPERATOR = frozenset(
    {
        errors_pb2.REASON_UPSTREAM_AUTH,
        errors_pb2.REASON_LOOP_DETECTED,
        errors_pb2.REASON_BUDGET_EXCEEDED,
    }
)


def to_gateway_error(error: Exception, exchange: Exchange) -> GatewayError:
    """Convert an exception to the error for the caller; log an unexpected exception."""
    if isinstance(error, GatewayError):
        return error
    if isinstance(error, grpc.aio.AioRpcError):
        failure = errors.from_rpc_error(error)
        # Canonical field paths are translated only if the body was parsed.
        paths = exchange.caller_paths
        return failure if paths is None else paths.translate(failure)
    if isinstance(error, BrokenBodyError):
        return errors.invalid(
            "body", "body: incomplete or malformed; check Content-Length or the chunked encoding"
        )
    log.error("unforeseen failure", exc_info=error)
    return errors.internal()


def failed(exchange: Exchange, error: GatewayError) -> JsonResponse:
    """Return an error response; store its code for the log and count its limit."""
    exchange.failure = error.code
    exchange.failed_attempts = error.attempts
    if error.limit:
        exchange.context.metrics.limits_reached.labels(error.limit).inc()
    return error_response(exchange, error)


def error_response(exchange: Exchange, error: GatewayError) -> JsonResponse:
    """Return an error response in the format of the endpoint."""
    api_format = credentials.api_format_of(exchange.headers, credentials.rules_for(exchange.path))
    status, body = render_error(api_format, error, exchange.request_id)
    headers = dict(error.headers)
    if error.caller_limits:
        set_caller_limits(exchange, headers, error.caller_limits)
    if error.upstream_request_id:
        headers[UPSTREAM_REQUEST_ID] = error.upstream_request_id
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if not _may_retry(error, status):
        headers["x-should-retry"] = "false"  # respected by the official SDKs
    exchange.added_headers = headers
    return JsonResponse(body, headers, status)


def _may_retry(error: GatewayError, status: int) -> bool:
    """Return whether a retry of the same request may succeed."""
    if len(error.attempts) > 1:
        return False  # the gateway has retried already, and clients' retries would multiply that
    if error.reason in _FOR_THE_OPERATOR:
        return False
    return status in _RETRYABLE or (status >= 500 and status != HTTPStatus.NOT_IMPLEMENTED)
