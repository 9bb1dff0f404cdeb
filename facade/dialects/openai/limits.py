"""Response headers that tell a caller its limits, as OpenAI names them.

Source: https://platform.openai.com/docs/guides/rate-limits; a reset is a duration as Go writes it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from gateway.accounts.v1.limits_pb2 import (
    MEASURE_REQUESTS_PER_MINUTE,
    MEASURE_TOKENS_PER_MINUTE,
    LimitState,
    Measure,
)

LIMIT_HEADERS: Final = "x-ratelimit-"
_NAMES: Mapping[Measure.ValueType, str] = {
    MEASURE_REQUESTS_PER_MINUTE: "requests",
    MEASURE_TOKENS_PER_MINUTE: "tokens",
}


def limit_headers(limits: Iterable[LimitState], now_ms: int) -> dict[str, str]:
    """Return the headers of a caller's limits, by the time in Unix milliseconds."""
    headers: dict[str, str] = {}
    for one in limits:
        if name := _NAMES.get(one.measure):
            headers[f"{LIMIT_HEADERS}limit-{name}"] = str(one.limit)
            headers[f"{LIMIT_HEADERS}remaining-{name}"] = str(one.remaining)
            headers[f"{LIMIT_HEADERS}reset-{name}"] = _duration(one.reset_ms - now_ms)
    return headers


def _duration(ms: int) -> str:
    """Return a duration of at most a minute, such as `12.5s` or `7ms`."""
    if ms < 1000:
        return f"{max(0, ms)}ms"
    return f"{ms / 1000:g}s"
