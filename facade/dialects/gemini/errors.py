"""Errors in Google's format: `google.rpc.Status` as JSON (AIP-193)."""

from typing import Any, Final

import orjson

from facade.dialects.gateway_objects import attempt_object
from services.common.errors import GatewayError

Json = dict[str, Any]

_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    410: "NOT_FOUND",
    416: "OUT_OF_RANGE",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    504: "DEADLINE_EXCEEDED",
}
# Google has no status for a spent budget, nor for an overloaded provider.
_HTTP: Final = {402: 429, 529: 503}
_DOMAIN: Final = "gateway"
_TYPE: Final = "type.googleapis.com/google.rpc."


def render_error(error: GatewayError, request_id: str) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error."""
    body = error_body(error)
    body["error"]["details"].append({"@type": f"{_TYPE}RequestInfo", "requestId": request_id})
    return _HTTP.get(error.http_status, error.http_status), orjson.dumps(body)


def error_body(error: GatewayError) -> Json:
    """Return the error object for a response or a stream.

    Its details have the stable code of the gateway as a reason, the path of an invalid field, the
    time after which a retry makes sense, and the attempts at providers.
    """
    status = error.http_status
    name = _STATUSES.get(status) or ("INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
    details: list[Json] = [
        {"@type": f"{_TYPE}ErrorInfo", "reason": error.code.upper(), "domain": _DOMAIN}
    ]
    if error.param:
        violation = {"field": error.param, "description": error.message}
        details.append({"@type": f"{_TYPE}BadRequest", "fieldViolations": [violation]})
    if error.retry_after_s is not None:
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{error.retry_after_s}s"})
    if error.attempts:
        attempts = [attempt_object(attempt) for attempt in error.attempts]
        details.append({"@type": f"{_TYPE}DebugInfo", "attempts": attempts})
    fields = {
        "code": _HTTP.get(status, status),
        "message": error.message,
        "status": name,
        "details": details,
    }
    return {"error": fields}
