"""Response headers with the limits of a caller, under OpenAI's names.

Source: https://platform.openai.com/docs/guides/rate-limits; a reset is a duration in Go's format.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from gateway.accounts.v1.limits_pb2 import (
    MEASURE_REQUESTS_PER_MINUTE,
    MEASURE_TOKENS_PER_MINUTE,
    LimitState,
    Measure,
)
from services.common.messages.passthrough_answer import CallerLimit

LIMIT_HEADERS: Final = "x-ratelimit-"
# Header names of the limit, of the remaining amount, and of the time until the reset.
_NAMES: Mapping[Measure.ValueType, tuple[str, str, str]] = {
    measure: (
        f"{LIMIT_HEADERS}limit-{name}",
        f"{LIMIT_HEADERS}remaining-{name}",
        f"{LIMIT_HEADERS}reset-{name}",
    )
    for measure, name in (
        (MEASURE_REQUESTS_PER_MINUTE, "requests"),
        (MEASURE_TOKENS_PER_MINUTE, "tokens"),
    )
}


def limit_headers(limits: Iterable[LimitState | CallerLimit], now_ms: int) -> dict[str, str]:
    """Return the headers of a caller's limits; `now_ms` is in Unix milliseconds."""
    headers: dict[str, str] = {}
    for one in limits:
        if names := _NAMES.get(one.measure):
            limit, remaining, reset = names
            headers[limit] = f"{one.limit}"
            headers[remaining] = f"{one.remaining}"
            headers[reset] = _duration(one.reset_ms - now_ms)
    return headers


def _duration(ms: int) -> str:
    """Return a duration of at most a minute, such as `12.5s` or `7ms`."""
    if ms < 1000:
        return f"{max(0, ms)}ms"
    return f"{ms / 1000:g}s"
