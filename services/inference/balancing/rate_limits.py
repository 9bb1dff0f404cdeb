"""What the response of a deployment says about when it can be asked again. Pure.

Read are `retry-after-ms` and `retry-after`, and the limits in the headers of OpenAI
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

# Where a deployment limits its rate and does not say for how long.
UNTOLD_WAIT_S = 5.0
# Of a deployment that refuses the operator's key or account, or does not have the model.
REFUSED_WAIT_S = 30.0
# A longer wait is cut: until then one request asks again.
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
# As 1h2m3.5s or 20ms.
_DURATION = re.compile(
    r"(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?"
)
_UNITS_S = (3600.0, 60.0, 1.0, 0.001)
# A larger number of seconds is a time, in Unix seconds.
_FIRST_TIME = 1e9
# Statuses of limits that pass by themselves.
_OF_LIMITS = frozenset({429, 503, 529})
# Statuses that refuse the operator's account whatever the request is. 403 may refuse its content.
_OF_ACCOUNTS = frozenset({401, 402, 404})


class Cooldown(NamedTuple):
    """How long a deployment is left alone, in seconds, and why: a label of the metrics."""

    wait_s: float
    reason: str


def after_failure(
    error: UpstreamError, headers: Mapping[str, str], now: Callable[[], float]
) -> Cooldown | None:
    """Return how long a deployment is left alone that failed, or None.

    Args:
        error: the failure.
        headers: of its response, names in lower case or the mapping folds them.
        now: Unix seconds.
    """
    limits_rate = error.reason == errors_pb2.REASON_UPSTREAM_RATE_LIMITED
    if limits_rate or error.status in _OF_LIMITS:
        asked = wait_of(headers, now)
        if asked is None:
            asked = error.asked_wait_s  # in the body
        if asked is None and limits_rate:
            found = exhausted(headers, now)
            asked = UNTOLD_WAIT_S if found is None else found.wait_s
        return None if asked is None else _bounded(asked, "rate_limited")
    lacks_key = error.reason == errors_pb2.REASON_UPSTREAM_AUTH and error.status is None
    if lacks_key or error.status in _OF_ACCOUNTS:
        return Cooldown(REFUSED_WAIT_S, "refused")
    return None


def exhausted(headers: Mapping[str, str], now: Callable[[], float]) -> Cooldown | None:
    """Return how long a deployment is left alone that said that nothing remains, or None."""
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
    """Return the seconds until a reset that is told as a duration or a time, or None.

    A number is one of seconds, or of Unix seconds; other durations are OpenAI's, other times those
    of RFC 3339.
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
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    parts = zip(found.groups(), _UNITS_S, strict=True)
    return sum(float(number) * unit for number, unit in parts if number)


def _of_time(text: str, now: Callable[[], float]) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() - now()
