"""Response headers that tell a caller its limits, as the vendors of the dialects name them.

OpenAI: https://platform.openai.com/docs/guides/rate-limits; a reset is a duration as Go writes
it. Anthropic: https://docs.anthropic.com/en/api/rate-limits; a reset is a time of RFC 3339.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
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
    vendor = _VENDORS.get(dialect)
    if vendor is None:
        return
    prefix, names, reset_of = vendor
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
        headers[reset] = reset_of(one.reset_ms, now_ms)


def _time(reset_ms: int, now_ms: int) -> str:
    return datetime.fromtimestamp(reset_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _duration(reset_ms: int, now_ms: int) -> str:
    """Return a duration of at most a minute, such as `12.5s` or `7ms`."""
    ms = reset_ms - now_ms
    if ms < 1000:
        return f"{max(0, ms)}ms"
    return f"{ms / 1000:g}s"


class _Vendor(NamedTuple):
    """The headers of one vendor.

    Attributes:
        prefix: of all of them.
        names: of those of the limit, of what remains and of the reset, by what is limited.
        reset_of: writes the time of a reset; takes that and the time, in Unix milliseconds.
    """

    prefix: str
    names: Mapping[Measure.ValueType, tuple[str, str, str]]
    reset_of: Callable[[int, int], str]


_OPENAI = _Vendor(
    "x-ratelimit-",
    {
        measure: (
            f"x-ratelimit-limit-{about}",
            f"x-ratelimit-remaining-{about}",
            f"x-ratelimit-reset-{about}",
        )
        for measure, about in _SHOWN.items()
    },
    _duration,
)
_ANTHROPIC = _Vendor(
    "anthropic-ratelimit-",
    {
        measure: (
            f"anthropic-ratelimit-{about}-limit",
            f"anthropic-ratelimit-{about}-remaining",
            f"anthropic-ratelimit-{about}-reset",
        )
        for measure, about in _SHOWN.items()
    },
    _time,
)
_VENDORS: Mapping[Dialect.ValueType, _Vendor] = {
    conversation_pb2.DIALECT_OPENAI: _OPENAI,
    conversation_pb2.DIALECT_RESPONSES: _OPENAI,
    conversation_pb2.DIALECT_ANTHROPIC: _ANTHROPIC,
}
