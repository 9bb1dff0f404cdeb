"""Response headers with the limits of a caller, under the names of each dialect's vendor.

No vendor has a header for budgets, which the gateway names itself.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from facade.credentials import ApiFormat
from facade.dialects import anthropic, openai
from gateway.accounts.v1.limits_pb2 import LimitState
from services.common.limit_windows import SPEND
from services.common.messages.passthrough_answer import CallerLimit
from services.common.money import decimal_dollars

BUDGET_REMAINING: Final = "x-gateway-budget-remaining-usd"
BUDGET_RESET: Final = "x-gateway-budget-reset"


def set_limits(
    api_format: ApiFormat,
    headers: dict[str, str],
    limits: Sequence[LimitState | CallerLimit],
    now_ms: int,
) -> None:
    """Set headers of a caller's limits in place of the provider's, and of the tightest budget.

    Args:
        api_format: the format of the answer, which determines the names of the headers.
        headers: headers of the answer; they stay unchanged if no limit has a header.
        limits: limits of the caller.
        now_ms: the time in Unix milliseconds.
    """
    match api_format:
        case ApiFormat.OPENAI:
            prefix, own = openai.LIMIT_HEADERS, openai.limit_headers(limits, now_ms)
        case ApiFormat.ANTHROPIC:
            prefix, own = anthropic.LIMIT_HEADERS, anthropic.limit_headers(limits)
        case ApiFormat.GOOGLE:
            prefix, own = "", {}  # Google has no headers for limits
        case ApiFormat.ENVELOPE:
            return
    budgets = [one for one in limits if one.measure in SPEND]
    if budgets:
        tightest = min(budgets, key=lambda one: one.remaining)
        headers[BUDGET_REMAINING] = decimal_dollars(tightest.remaining)
        if tightest.reset_ms:
            headers[BUDGET_RESET] = _time(tightest.reset_ms)
    if own:
        for name in [name for name in headers if name.startswith(prefix)]:
            del headers[name]
        headers.update(own)


# Cached, as days and months end at the same time for all.
@lru_cache(maxsize=8)
def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
