"""Entries of the request log for tests."""

from typing import Any

from gateway.requests.v1.requests_pb2 import LoggedRequest
from services.common.ids import time_prefix

START_MS = 1_790_000_000_000


def entry(number: int, **fields: Any) -> LoggedRequest:
    """Return an entry, a second after that with the number before."""
    time_ms = START_MS + 1000 * number
    values: dict[str, Any] = {
        "id": f"{time_prefix('log_', time_ms)}_{number}",
        "time_ms": time_ms,
        "request_id": f"req_{number}",
        "user_id": "user_a",
        "key_id": "key_a",
        "endpoint": "POST /beta/v1/chat/completions",
        "status": 200,
        "requested_model": "fast",
        "model": "fast",
        "provider": "openai",
        "duration_ms": 5,
        "input_tokens": 3,
        "output_tokens": 4,
        "cost_pusd": 10 * number,
    }
    return LoggedRequest(**(values | fields))
