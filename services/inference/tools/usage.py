"""Sum token usage over several rounds. Pure."""

from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import Opaque, Usage

_SUMMED = (
    *("input_tokens", "output_tokens", "cache_creation_input_tokens"),
    *("cache_read_input_tokens", "reasoning_tokens"),
    *("web_search_requests", "web_fetch_requests"),
)


_LARGEST = 1 << 63


def add_usage(one: Usage, other: Usage) -> Usage:
    """Return the sum of two usages.

    Numeric provider-specific fields are summed. Other fields keep the later value, and fields of
    another dialect are dropped.
    """
    total = Usage()
    total.CopyFrom(other)
    for name in _SUMMED:
        setattr(total, name, getattr(one, name) + getattr(other, name))
    if one.HasField("extra"):
        if not other.HasField("extra"):
            total.extra.CopyFrom(one.extra)
        elif one.extra.dialect == other.extra.dialect:
            total.extra.CopyFrom(_summed(one.extra, other.extra))
    return total


def _summed(one: Opaque, other: Opaque) -> Opaque:
    figures = _added(orjson.loads(one.json), orjson.loads(other.json))
    return Opaque(dialect=other.dialect, json=orjson.dumps(figures))


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {
            **one,
            **{
                name: _added(one[name], value) if name in one else value
                for name, value in other.items()
            },
        }
    if _is_number(one) and _is_number(other):
        total = one + other
        # Larger numbers are not valid in JSON.
        return total if abs(total) < _LARGEST else other
    return one if other is None else other


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
