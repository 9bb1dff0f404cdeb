"""Failures in Format A."""

import json

from facade.dialects.openai import render_error
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt, Reason
from services.common.errors import GatewayError, invalid
from tests.grid import each_row


def test_an_error_names_its_field_and_reason() -> None:
    status, raw = render_error(invalid("n", "n: must be 1"), "req_1")
    assert status == 400
    assert json.loads(raw) == {
        "error": {
            "message": "n: must be 1",
            "type": "invalid_request_error",
            "param": "n",
            "code": "invalid_request",
        }
    }


@each_row(
    ("reason", "status", "kind"),
    [
        ("INTERNAL", 500, "server_error"),
        ("INVALID_API_KEY", 401, "authentication_error"),
        ("PERMISSION_DENIED", 403, "permission_error"),
        ("NOT_FOUND", 404, "invalid_request_error"),
        ("MODEL_NOT_FOUND", 404, "invalid_request_error"),
        ("NOT_IMPLEMENTED", 501, "server_error"),
        ("TOO_LARGE", 413, "invalid_request_error"),
        ("RATE_LIMITED", 429, "rate_limit_error"),
        ("UPSTREAM_RATE_LIMITED", 429, "rate_limit_error"),
        ("UNAVAILABLE", 503, "server_error"),
        ("UPSTREAM_OVERLOADED", 503, "server_error"),
        ("UPSTREAM_AUTH", 502, "server_error"),
        ("UPSTREAM_TIMEOUT", 504, "server_error"),
        ("LOOP_DETECTED", 508, "server_error"),
        ("CONTEXT_LENGTH_EXCEEDED", 400, "invalid_request_error"),
    ],
)
def test_a_reason_has_its_status_and_type(reason: str, status: int, kind: str) -> None:
    error = GatewayError(Reason.Value(f"REASON_{reason}"), "what happened")
    found, raw = render_error(error, "req_1")
    error_object = json.loads(raw)["error"]
    assert (found, error_object["type"], error_object["code"]) == (status, kind, reason.lower())
    assert error_object["param"] is None


def test_a_provider_of_this_dialect_has_its_own_code_and_param() -> None:
    error = GatewayError(errors_pb2.REASON_UPSTREAM_REJECTED, "what happened")
    error.upstream_code, error.upstream_param = "unsupported_value", "messages[0].content"
    error_object = json.loads(render_error(error, "req_1")[1])["error"]
    assert (error_object["code"], error_object["param"]) == (
        "unsupported_value",
        "messages[0].content",
    )


def test_its_code_may_be_a_number() -> None:
    error = GatewayError(errors_pb2.REASON_UPSTREAM_REJECTED, "what happened")
    error.upstream_code = 400
    assert json.loads(render_error(error, "req_1")[1])["error"]["code"] == 400


def test_attempts_are_reported_in_order() -> None:
    attempts = [
        Attempt(
            step="a",
            model="p/x",
            status=500,
            reason=errors_pb2.REASON_UPSTREAM_ERROR,
            duration_ms=12,
        ),
        Attempt(step="b", model="p/y", reason=errors_pb2.REASON_UPSTREAM_TIMEOUT, duration_ms=900),
    ]
    error = GatewayError(errors_pb2.REASON_UPSTREAM_TIMEOUT, "silent", attempts=attempts)
    assert json.loads(render_error(error, "req_1")[1])["error"]["attempts"] == [
        {
            "step": "a",
            "model": "p/x",
            "status": 500,
            "reason": "upstream_error",
            "ms": 12,
        },
        {
            "step": "b",
            "model": "p/y",
            "status": None,
            "reason": "upstream_timeout",
            "ms": 900,
        },
    ]
