import orjson
from anthropic.types import ErrorResponse

from facade.dialects.anthropic import render_error
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt, Reason
from services.common.errors import GatewayError, invalid
from tests.grid import each_row

TYPES = {
    "INTERNAL": (500, "api_error"),
    "INVALID_REQUEST": (400, "invalid_request_error"),
    "INVALID_API_KEY": (401, "authentication_error"),
    "PERMISSION_DENIED": (403, "permission_error"),
    "NOT_FOUND": (404, "not_found_error"),
    "MODEL_NOT_FOUND": (404, "not_found_error"),
    "NOT_IMPLEMENTED": (501, "api_error"),
    "UNSUPPORTED": (400, "invalid_request_error"),
    "TOO_LARGE": (413, "request_too_large"),
    "RATE_LIMITED": (429, "rate_limit_error"),
    "UNAVAILABLE": (503, "overloaded_error"),
    "TIMEOUT": (504, "timeout_error"),
    "CANCELLED": (499, "invalid_request_error"),
    "STORAGE_QUOTA_EXCEEDED": (403, "permission_error"),
    "STORAGE_UNAVAILABLE": (503, "overloaded_error"),
    "RANGE_NOT_SATISFIABLE": (416, "invalid_request_error"),
    "CONFLICT": (409, "invalid_request_error"),
    "GONE": (410, "invalid_request_error"),
    "BUDGET_EXCEEDED": (402, "billing_error"),
    "STORAGE_FULL": (503, "overloaded_error"),
    "MEMORY_STORAGE_EXCEEDED": (403, "permission_error"),
    "MEMORY_BUSY": (429, "rate_limit_error"),
    "MEMORY_QUOTA_EXCEEDED": (403, "permission_error"),
    "MEMORY_NOT_SYNCHRONIZED": (503, "overloaded_error"),
    "UPSTREAM_REJECTED": (400, "invalid_request_error"),
    "CONTEXT_LENGTH_EXCEEDED": (400, "invalid_request_error"),
    "CONTENT_FILTER": (400, "invalid_request_error"),
    "UPSTREAM_AUTH": (502, "api_error"),
    "UPSTREAM_RATE_LIMITED": (429, "rate_limit_error"),
    "UPSTREAM_OVERLOADED": (529, "overloaded_error"),
    "UPSTREAM_ERROR": (502, "api_error"),
    "UPSTREAM_CONNECTION": (502, "api_error"),
    "UPSTREAM_TIMEOUT": (504, "timeout_error"),
    "LOOP_DETECTED": (508, "api_error"),
    "NO_VISION_MODEL": (400, "invalid_request_error"),
}


def test_the_table_knows_every_reason():
    known = {Reason.Name(reason).removeprefix("REASON_") for reason in Reason.values() if reason}
    assert known == TYPES.keys()


@each_row("name", TYPES)
def test_every_reason_has_its_status_and_type(name):
    error = GatewayError(Reason.Value(f"REASON_{name}"), "why")
    status, body = render_error(error, "req_1")
    parsed = orjson.loads(body)
    assert (status, parsed["error"]["type"]) == TYPES[name]
    assert parsed["error"]["code"] == name.lower()
    if status != 413:  # The SDK's own list of types lacks that one.
        ErrorResponse.model_validate_json(body, strict=True)


def test_an_error_names_its_field():
    _, body = render_error(invalid("a[0].b", "a[0].b: is required"), "req_1")
    assert orjson.loads(body) == {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "a[0].b: is required",
            "code": "invalid_request",
            "param": "a[0].b",
        },
        "request_id": "req_1",
    }


def test_an_error_lists_the_attempts():
    attempts = [
        Attempt(
            step="primary",
            model="p/m",
            status=429,
            reason=errors_pb2.REASON_UPSTREAM_RATE_LIMITED,
            duration_ms=12,
        ),
        Attempt(step="b", model="q/n", reason=errors_pb2.REASON_UPSTREAM_TIMEOUT, duration_ms=900),
    ]
    error = GatewayError(errors_pb2.REASON_UPSTREAM_TIMEOUT, "why", attempts=attempts)
    _, body = render_error(error, "req_1")
    assert orjson.loads(body)["error"]["attempts"] == [
        {
            "step": "primary",
            "model": "p/m",
            "status": 429,
            "reason": "upstream_rate_limited",
            "ms": 12,
        },
        {"step": "b", "model": "q/n", "status": None, "reason": "upstream_timeout", "ms": 900},
    ]
