"""Tokens that Anthropic's usage lists in `iterations`, apart from its sums. Pure.

The sums leave out the iterations that compact the conversation, and those of an advisor: another
model, which the model of the answer consulted. Both are billed.

Source: https://platform.claude.com/docs/en/build-with-claude/compaction#understanding-usage
"""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, Opaque, Usage

_COMPACTION: Final = "compaction"
_ADVISOR: Final = "advisor_message"
_NAMED_COUNTS: Final = (
    *("input_tokens", "output_tokens"),
    *("cache_creation_input_tokens", "cache_read_input_tokens"),
)
# More tokens, and longer names, are errors of a provider.
_MOST: Final = 2**53
_MAX_NAME: Final = 256
# The field of cache writes by their lifetimes.
_WRITES: Final = "cache_creation"


def with_compactions(usage: Usage) -> Usage:
    """Return a usage whose sums include its compactions; the argument if it has none."""
    compactions = _iterations(usage, _COMPACTION)
    if not compactions:
        return usage
    total = Usage()
    total.CopyFrom(usage)
    fields = orjson.loads(usage.extra.json)
    for compaction in compactions:
        _add(total, compaction)
        _add_writes(fields, compaction)
    total.extra.json = orjson.dumps(fields)
    return total


def of_advisors(usage: Usage) -> Iterator[tuple[str, Usage]]:
    """Yield the model and the usage of each time that another model was consulted."""
    for one in _iterations(usage, _ADVISOR):
        model = one.get("model")
        if isinstance(model, str) and 0 < len(model) <= _MAX_NAME:
            advice, fields = Usage(), dict[str, Any]()
            _add(advice, one)
            _add_writes(fields, one)
            if fields:
                json = orjson.dumps(fields)
                advice.extra.CopyFrom(Opaque(dialect=DIALECT_ANTHROPIC, json=json))
            yield model, advice


def _iterations(usage: Usage, kind: str) -> list[dict[str, Any]]:
    """Return the iterations of a kind."""
    if not usage.HasField("extra") or usage.extra.dialect != DIALECT_ANTHROPIC:
        return []
    # Most usages list only messages, or nothing, and are not parsed.
    if kind.encode() not in usage.extra.json:
        return []
    try:
        fields = orjson.loads(usage.extra.json)
    except orjson.JSONDecodeError:
        return []
    listed = fields.get("iterations") if isinstance(fields, dict) else None
    if not isinstance(listed, list):
        return []
    return [one for one in listed if isinstance(one, dict) and one.get("type") == kind]


def _add(total: Usage, iteration: dict[str, Any]) -> None:
    for name in _NAMED_COUNTS:
        setattr(total, name, min(getattr(total, name) + _count(iteration.get(name)), _MOST))


def _add_writes(fields: dict[str, Any], iteration: dict[str, Any]) -> None:
    """Add the cache writes of an iteration to those of `fields`, by their lifetimes."""
    writes = iteration.get(_WRITES)
    if not isinstance(writes, dict):
        return
    before = fields.get(_WRITES)
    before = before if isinstance(before, dict) else {}
    added = {name: _count(before.get(name)) + _count(count) for name, count in writes.items()}
    fields[_WRITES] = {**before, **added}


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < _MOST else 0
