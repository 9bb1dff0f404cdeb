"""Response headers that tell a caller its limits, as Anthropic names them.

Source: https://docs.anthropic.com/en/api/rate-limits; a reset is a time of RFC 3339.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from gateway.accounts.v1.limits_pb2 import (
    MEASURE_REQUESTS_PER_MINUTE,
    MEASURE_TOKENS_PER_MINUTE,
    LimitState,
    Measure,
)

LIMIT_HEADERS: Final = "anthropic-ratelimit-"
_NAMES: Mapping[Measure.ValueType, str] = {
    MEASURE_REQUESTS_PER_MINUTE: "requests",
    MEASURE_TOKENS_PER_MINUTE: "tokens",
}


def limit_headers(limits: Iterable[LimitState]) -> dict[str, str]:
    """Return the headers of a caller's limits."""
    headers: dict[str, str] = {}
    for one in limits:
        if name := _NAMES.get(one.measure):
            headers[f"{LIMIT_HEADERS}{name}-limit"] = str(one.limit)
            headers[f"{LIMIT_HEADERS}{name}-remaining"] = str(one.remaining)
            headers[f"{LIMIT_HEADERS}{name}-reset"] = _time(one.reset_ms)
    return headers


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
