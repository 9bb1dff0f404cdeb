"""Response headers with the limits of a caller, under Anthropic's names.

Source: https://docs.anthropic.com/en/api/rate-limits; a reset is an RFC 3339 time.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from gateway.accounts.v1.limits_pb2 import (
    MEASURE_REQUESTS_PER_MINUTE,
    MEASURE_TOKENS_PER_MINUTE,
    LimitState,
    Measure,
)
from services.common.messages.passthrough_answer import CallerLimit

LIMIT_HEADERS: Final = "anthropic-ratelimit-"
# Header names of the limit, of the remaining amount, and of the time of the reset.
_NAMES: Mapping[Measure.ValueType, tuple[str, str, str]] = {
    measure: (
        f"{LIMIT_HEADERS}{name}-limit",
        f"{LIMIT_HEADERS}{name}-remaining",
        f"{LIMIT_HEADERS}{name}-reset",
    )
    for measure, name in (
        (MEASURE_REQUESTS_PER_MINUTE, "requests"),
        (MEASURE_TOKENS_PER_MINUTE, "tokens"),
    )
}


def limit_headers(limits: Iterable[LimitState | CallerLimit]) -> dict[str, str]:
    """Return the headers of a caller's limits."""
    headers: dict[str, str] = {}
    for one in limits:
        if names := _NAMES.get(one.measure):
            limit, remaining, reset = names
            headers[limit] = f"{one.limit}"
            headers[remaining] = f"{one.remaining}"
            headers[reset] = _time(one.reset_ms)
    return headers


# Cached, as windows of a minute end at the same time for all.
@lru_cache(maxsize=8)
def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
