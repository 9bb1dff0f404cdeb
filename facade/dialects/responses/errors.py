"""Errors in responses: of failed responses, and in streams."""

from typing import Any

import orjson

from services.common.errors import GatewayError


def failure(error: GatewayError) -> dict[str, Any]:
    """Return the `error` of a failed response, whose codes are a fixed set."""
    status = error.http_status
    if status == 429:
        code = "rate_limit_exceeded"
    else:
        code = "invalid_prompt" if status < 500 else "server_error"
    return {"code": code, "message": error.message}


def error_event(error: GatewayError, number: int) -> bytes:
    """Return the event `error` of a stream, with its sequence number."""
    told = {
        "type": "error",
        "code": error.upstream_code or error.code,
        "message": error.message,
        "param": error.upstream_param or error.param or None,
        "sequence_number": number,
    }
    return b"event: error\ndata: %b\n\n" % orjson.dumps(told)
