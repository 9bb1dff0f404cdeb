"""Response headers that tell a caller its limits, as the vendors of the dialects name them."""

from collections.abc import Iterable, Mapping

from facade.credentials import ApiFormat
from facade.dialects import anthropic, openai
from gateway.accounts.v1.limits_pb2 import LimitState


def with_limits(
    shape: ApiFormat, headers: Mapping[str, str], limits: Iterable[LimitState], now_ms: int
) -> dict[str, str]:
    """Return headers with those of a caller's limits in place of the provider's.

    Args:
        shape: the format of the answer, whose vendor names the headers.
        headers: those of the answer; where no limit has a header there they stay as they are.
        limits: the caller's.
        now_ms: the time in Unix milliseconds.
    """
    match shape:
        case ApiFormat.OPENAI:
            prefix, own = openai.LIMIT_HEADERS, openai.limit_headers(limits, now_ms)
        case ApiFormat.ANTHROPIC:
            prefix, own = anthropic.LIMIT_HEADERS, anthropic.limit_headers(limits)
        case ApiFormat.ENVELOPE:
            return dict(headers)
    if not own:
        return dict(headers)
    return {name: text for name, text in headers.items() if not name.startswith(prefix)} | own
