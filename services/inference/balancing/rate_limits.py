"""Cooldowns of deployments, from the headers of their responses. Pure.

The headers are `retry-after-ms` and `retry-after`, and the rate limits of OpenAI
(`x-ratelimit-remaining-requests`, `x-ratelimit-reset-requests`, the same of tokens), Azure, and
Anthropic (`anthropic-ratelimit-requests-remaining`, `-reset`, of tokens, input and output tokens).
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError
from services.inference.providers.failures import wait_of

# For a rate limit without a duration.
UNTOLD_WAIT_S = 5.0
# For a deployment that rejects the operator's key or account, or does not have the model.
REFUSED_WAIT_S = 30.0
# Maximum cooldown; after it a request tries the deployment again.
LONGEST_WAIT_S = 3600.0

_REMAINING = tuple(
    (f"x-ratelimit-remaining{kind}", f"x-ratelimit-reset{kind}")
    for kind in ("-requests", "-tokens", "")
) + tuple(
    (f"anthropic-ratelimit-{kind}-remaining", f"anthropic-ratelimit-{kind}-reset")
    for kind in ("requests", "tokens", "input-tokens", "output-tokens")
)
_ZERO = frozenset({"0", "0.0"})
_MAX_TEXT = 64
# Such as 1h2m3.5s or 20ms.
_DURATION = re.compile(
    r"(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?"
)
_UNITS_S = (3600.0, 60.0, 1.0, 0.001)
# Larger numbers are Unix seconds, smaller ones durations.
_FIRST_TIME = 1e9
# Status codes of rate limits and overload.
_OF_LIMITS = frozenset({429, 503, 529})
# Status codes that reject the operator's account or model whatever the request is. 403 is not
# included: it may reject the content.
_OF_ACCOUNTS = frozenset({401, 402, 404})


class Cooldown(NamedTuple):
    """A cooldown of a deployment: seconds, and the reason as a label of metrics."""

    wait_s: float
    reason: str


def after_failure(
    error: UpstreamError, headers: Mapping[str, str], now: Callable[[], float]
) -> Cooldown | None:
    """Return the cooldown after a failure of a deployment, or None.

    Args:
        error: the failure.
        headers: the headers of the response, in lower case or a case-insensitive mapping.
        now: returns Unix seconds.
    """
    limits_rate = error.reason == errors_pb2.REASON_UPSTREAM_RATE_LIMITED
    if limits_rate or error.status in _OF_LIMITS:
        wait_s = wait_of(headers, now)
        if wait_s is None:
            wait_s = error.upstream_retry_after_s  # in the body
        if wait_s is None and limits_rate:
            exhausted_limit = exhausted(headers, now)
            wait_s = UNTOLD_WAIT_S if exhausted_limit is None else exhausted_limit.wait_s
        return None if wait_s is None else _bounded(wait_s, "rate_limited")
    lacks_key = error.reason == errors_pb2.REASON_UPSTREAM_AUTH and error.status is None
    if lacks_key or error.status in _OF_ACCOUNTS:
        return Cooldown(REFUSED_WAIT_S, "refused")
    return None


def exhausted(headers: Mapping[str, str], now: Callable[[], float]) -> Cooldown | None:
    """Return the cooldown of a deployment that reports no remaining requests or tokens, or None."""
    longest = None
    for remaining, reset in _REMAINING:
        if headers.get(remaining) in _ZERO:
            wait_s = _until_reset(headers.get(reset, ""), now)
            wait_s = UNTOLD_WAIT_S if wait_s is None else wait_s
            longest = wait_s if longest is None else max(longest, wait_s)
    return None if longest is None else _bounded(longest, "exhausted")


def _bounded(wait_s: float, reason: str) -> Cooldown:
    return Cooldown(min(max(wait_s, 0.0), LONGEST_WAIT_S), reason)


def _until_reset(text: str, now: Callable[[], float]) -> float | None:
    """Parse a reset as a duration or time; return the seconds until then, or None.

    A number is a duration in seconds, or a time in Unix seconds. Other durations are in OpenAI's
    format (`1m2s`), other times in that of RFC 3339.
    """
    text = text.strip()
    if not text or len(text) > _MAX_TEXT:
        return None
    try:
        seconds = float(text)
    except ValueError:
        duration = _of_duration(text)
        return _of_time(text, now) if duration is None else duration
    if not math.isfinite(seconds):
        return None
    return seconds - now() if seconds >= _FIRST_TIME else seconds


def _of_duration(text: str) -> float | None:
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    parts = zip(match.groups(), _UNITS_S, strict=True)
    return sum(float(number) * unit for number, unit in parts if number)


def _of_time(text: str, now: Callable[[], float]) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() - now()
