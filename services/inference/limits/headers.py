"""Response headers that tell a caller its limits, as the vendors of the dialects name them.

OpenAI: https://platform.openai.com/docs/guides/rate-limits; a reset is a duration as Go writes
it. Anthropic: https://docs.anthropic.com/en/api/rate-limits; a reset is a time of RFC 3339.
"""

from collections.abc import Iterable, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import NamedTuple

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Measure
from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect

# What the headers are about.
_SHOWN: Mapping[Measure.ValueType, str] = {
    limits_pb2.MEASURE_REQUESTS_PER_MINUTE: "requests",
    limits_pb2.MEASURE_TOKENS_PER_MINUTE: "tokens",
}
_PREFIXES: Mapping[Dialect.ValueType, str] = {
    conversation_pb2.DIALECT_OPENAI: "x-ratelimit-",
    conversation_pb2.DIALECT_RESPONSES: "x-ratelimit-",
    conversation_pb2.DIALECT_ANTHROPIC: "anthropic-ratelimit-",
}


class Standing(NamedTuple):
    """How a caller stands with one limit.

    Attributes:
        measure: what is limited.
        limit: the limit.
        remaining: what is left of it in the window.
        reset_ms: when the window ends, in Unix milliseconds.
    """

    measure: Measure.ValueType
    limit: int
    remaining: int
    reset_ms: int


def put_headers(
    headers: MutableMapping[str, str],
    dialect: Dialect.ValueType,
    standings: Iterable[Standing],
    now_ms: int,
) -> None:
    """Add the headers of the tightest limits, in place of those of the provider.

    Args:
        headers: of the answer; unchanged where no limit is shown.
        dialect: of the caller; without one there are none.
        standings: with all limits of the caller.
        now_ms: the time.
    """
    prefix = _PREFIXES.get(dialect)
    tightest: dict[str, Standing] = {}
    for one in standings:
        about = _SHOWN.get(one.measure)
        if about is not None:
            known = tightest.get(about)
            if known is None or one.remaining < known.remaining:
                tightest[about] = one
    if prefix is None or not tightest:
        return
    for name in [name for name in headers if name.startswith(prefix)]:
        del headers[name]
    for about, one in tightest.items():
        remaining, limit = str(one.remaining), str(one.limit)
        if dialect == conversation_pb2.DIALECT_ANTHROPIC:
            headers[f"{prefix}{about}-limit"] = limit
            headers[f"{prefix}{about}-remaining"] = remaining
            headers[f"{prefix}{about}-reset"] = _time(one.reset_ms)
        else:
            headers[f"{prefix}limit-{about}"] = limit
            headers[f"{prefix}remaining-{about}"] = remaining
            headers[f"{prefix}reset-{about}"] = _duration(one.reset_ms - now_ms)


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _duration(ms: int) -> str:
    """Return a duration of at most a minute, such as `12.5s` or `7ms`."""
    if ms < 1000:
        return f"{max(0, ms)}ms"
    return f"{ms / 1000:g}s"
