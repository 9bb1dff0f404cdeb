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


class _Names(NamedTuple):
    """Names of the headers of one limit."""

    limit: str
    remaining: str
    reset: str


_OPENAI = "x-ratelimit-"
_ANTHROPIC = "anthropic-ratelimit-"
_PREFIXES: Mapping[Dialect.ValueType, str] = {
    conversation_pb2.DIALECT_OPENAI: _OPENAI,
    conversation_pb2.DIALECT_RESPONSES: _OPENAI,
    conversation_pb2.DIALECT_ANTHROPIC: _ANTHROPIC,
}
_NAMES: Mapping[str, Mapping[Measure.ValueType, _Names]] = {
    _OPENAI: {
        measure: _Names(*[f"{_OPENAI}{what}-{about}" for what in _Names._fields])
        for measure, about in _SHOWN.items()
    },
    _ANTHROPIC: {
        measure: _Names(*[f"{_ANTHROPIC}{about}-{what}" for what in _Names._fields])
        for measure, about in _SHOWN.items()
    },
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
    if prefix is None:
        return
    names = _NAMES[prefix]
    tightest: dict[Measure.ValueType, Standing] = {}
    for one in standings:
        if one.measure in names:
            known = tightest.get(one.measure)
            if known is None or one.remaining < known.remaining:
                tightest[one.measure] = one
    if not tightest:
        return
    for name in [name for name in headers if name.startswith(prefix)]:
        del headers[name]
    for measure, one in tightest.items():
        limit, remaining, reset = names[measure]
        headers[limit] = str(one.limit)
        headers[remaining] = str(one.remaining)
        if prefix is _ANTHROPIC:
            headers[reset] = _time(one.reset_ms)
        else:
            headers[reset] = _duration(one.reset_ms - now_ms)


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _duration(ms: int) -> str:
    """Return a duration of at most a minute, such as `12.5s` or `7ms`."""
    if ms < 1000:
        return f"{max(0, ms)}ms"
    return f"{ms / 1000:g}s"
