"""Exported entries for tests."""

from typing import Any

from gateway.requests.v1.requests_pb2 import LoggedRequest, RequestBodies
from services.common.process.telemetry.trace_context import TraceContext
from services.request_log.exporters.base import ExportedRequest

TRACE = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", True)


def exported(number: int = 1, body: str | None = None, **fields: Any) -> ExportedRequest:
    values: dict[str, Any] = {
        "id": f"log_{number}",
        "request_id": f"req_{number}",
        "time_ms": 1_700_000_000_500,
        "duration_ms": 500,
        "user_id": "user_a",
        "key_id": "key_a",
        "endpoint": "POST /v1/chat/completions",
        "status": 200,
    }
    logged = LoggedRequest(**(values | fields))
    bodies = None if body is None else RequestBodies(id=logged.id, request=body, response=body)
    return ExportedRequest(logged, bodies, TRACE)
