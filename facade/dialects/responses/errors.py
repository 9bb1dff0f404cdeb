"""Errors in responses: of failed responses, and in streams."""

from typing import Any

import orjson

from facade.dialects.openai.errors import error_code
from services.common.errors import GatewayError


def failure(error: GatewayError) -> dict[str, Any]:
    """Return the `error` of a failed response, whose codes are a fixed set."""
    status = error.http_status
    if status in (402, 429):
        code = "rate_limit_exceeded"
    else:
        code = "invalid_prompt" if status < 500 else "server_error"
    return {"code": code, "message": error.message}


def error_event(error: GatewayError, number: int) -> bytes:
    """Return the event `error` of a stream, with its sequence number."""
    event = {
        "type": "error",
        "code": error_code(error),
        "message": error.message,
        "param": error.upstream_param or error.param or None,
        "sequence_number": number,
    }
    return b"event: error\ndata: %b\n\n" % orjson.dumps(event)
