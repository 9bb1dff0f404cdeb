"""Errors in Anthropic's format (Format B)."""

import orjson

from facade.dialects.anthropic.overflow import overflow_message
from facade.dialects.gateway_objects import attempt_object
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def render_error(error: GatewayError, request_id: str) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error."""
    return error.http_status, orjson.dumps(error_body(error, request_id))


def error_body(error: GatewayError, request_id: str) -> dict[str, object]:
    """Return the error object for a response or a stream.

    Beside Anthropic's own fields, `error` has the stable `code`, the `param` if a field is invalid,
    and `attempts` if providers were called.
    """
    status = error.http_status
    fallback = "invalid_request_error" if status < 500 else "api_error"
    message = error.message
    if error.reason == errors_pb2.REASON_CONTEXT_LENGTH_EXCEEDED:
        message = overflow_message(message)
    fields: dict[str, object] = {
        "type": _TYPES.get(status, fallback),
        "message": message,
        "code": error.code,
    }
    if error.param:
        fields["param"] = error.param
    if error.attempts:
        fields["attempts"] = [attempt_object(attempt) for attempt in error.attempts]
    return {"type": "error", "error": fields, "request_id": request_id}
