"""Response headers with the limits of a caller, under the names of each dialect's vendor."""

from collections.abc import Iterable

from facade.credentials import ApiFormat
from facade.dialects import anthropic, openai
from gateway.accounts.v1.limits_pb2 import LimitState
from services.common.passthrough_answer import CallerLimit


def set_limits(
    api_format: ApiFormat,
    headers: dict[str, str],
    limits: Iterable[LimitState | CallerLimit],
    now_ms: int,
) -> None:
    """Set headers of a caller's limits in place of the provider's.

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
        case ApiFormat.ENVELOPE:
            return
    if own:
        for name in [name for name in headers if name.startswith(prefix)]:
            del headers[name]
        headers.update(own)
