"""Errors in OpenAI's format (Format A)."""

from typing import Any

import orjson

from facade.dialects.attempts import attempt_object
from services.common.errors import GatewayError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
# Format A has no status for an overloaded provider; 503 is known to its clients.
_STATUSES = {529: 503}


def render_error(error: GatewayError, request_id: str) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error.

    The request id is only sent as a header, as the format has no field for it.
    """
    status = _STATUSES.get(error.http_status, error.http_status)
    return status, orjson.dumps({"error": error_object(error)})


def error_object(error: GatewayError) -> dict[str, Any]:
    """Return the object under `error`, for a response or a stream."""
    status = error.http_status
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    told: dict[str, Any] = {
        "message": error.message,
        "type": kind,
        # Values of a provider of the same dialect.
        "param": error.upstream_param or error.param or None,
        "code": error.upstream_code or error.code,
    }
    if error.attempts:
        told["attempts"] = [attempt_object(attempt) for attempt in error.attempts]
    return told
