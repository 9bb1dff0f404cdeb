"""Format A of failures: the error object of OpenAI's API."""

from typing import Any

import orjson

from facade.dialects.attempts import attempt_object
from services.common.errors import GatewayError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
# Format A has no status for an overloaded provider; its clients know that of an absent server.
_STATUSES = {529: 503}


def render_error(error: GatewayError, request_id: str) -> tuple[int, bytes]:
    """Return the HTTP status and the body that tell of a failure in Format A.

    The request id goes out in a header alone: the shape has no field for it.
    """
    status = _STATUSES.get(error.http_status, error.http_status)
    return status, orjson.dumps({"error": error_object(error)})


def error_object(error: GatewayError) -> dict[str, Any]:
    """Return the object under `error`, the same for an answer and for a stream that broke off."""
    status = error.http_status
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    told: dict[str, Any] = {
        "message": error.message,
        "type": kind,
        # Of a provider of the same dialect, its own.
        "param": error.upstream_param or error.param or None,
        "code": error.upstream_code or error.code,
    }
    if error.attempts:
        told["attempts"] = [attempt_object(attempt) for attempt in error.attempts]
    return told
