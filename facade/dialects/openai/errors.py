"""Errors in OpenAI's format (Format A)."""

from typing import Any

import orjson

from facade.dialects.gateway_objects import attempt_object
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
# Format A has no status for an overloaded provider; 503 is known to its clients. A spent budget is
# a 429 with a type of its own.
_STATUSES = {402: 429, 529: 503}
_SPENT = "insufficient_quota"


def render_error(error: GatewayError, request_id: str) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error.

    The request id is only sent as a header, as the format has no field for it.
    """
    status = _STATUSES.get(error.http_status, error.http_status)
    return status, orjson.dumps({"error": error_object(error)})


def error_event(error: GatewayError) -> bytes:
    """Return the event of an error that ends a stream."""
    return b"data: %s\n\n" % orjson.dumps({"error": error_object(error)})


def error_object(error: GatewayError) -> dict[str, Any]:
    """Return the object under `error`, for a response or a stream."""
    status = error.http_status
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    if error.reason == errors_pb2.REASON_BUDGET_EXCEEDED:
        kind = _SPENT
    fields: dict[str, Any] = {
        "message": error.message,
        "type": kind,
        # The provider's own value, if it uses the same dialect.
        "param": error.upstream_param or error.param or None,
        "code": error_code(error),
    }
    if error.upstream_innererror:
        fields["innererror"] = orjson.Fragment(error.upstream_innererror)
    if error.attempts:
        fields["attempts"] = [attempt_object(attempt) for attempt in error.attempts]
    return fields


def error_code(error: GatewayError) -> str | int:
    """Return the `code` of an error: the provider's if it uses the dialect, else the gateway's."""
    if error.reason == errors_pb2.REASON_BUDGET_EXCEEDED:
        return _SPENT
    return error.upstream_code or error.code
