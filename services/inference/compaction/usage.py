"""The usage of an answer whose conversation has been summarised first. Pure."""

from typing import Any, Final

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, Dialect, Opaque, Usage
from services.inference.tools.usage import add_usage

# Token counts of an iteration, with the same names in Anthropic's API.
_COUNTS: Final = (
    *("input_tokens", "output_tokens"),
    *("cache_creation_input_tokens", "cache_read_input_tokens"),
)


def joint_usage(dialect: Dialect.ValueType, summary: Usage, answer: Usage | None) -> Usage:
    """Return the usage of a summary and of the answer after it.

    Anthropic's dialect lists both as iterations, and counts in its sums only what answers; all
    others have the sums alone.

    Args:
        dialect: the caller's dialect.
        summary: the usage of the summary.
        answer: the usage of the answer; None for an answer that is the compaction alone.
    """
    if dialect != DIALECT_ANTHROPIC:
        return summary if answer is None else add_usage(summary, answer)
    iterations = [_iteration("compaction", summary)]
    usage = Usage()
    fields: dict[str, Any] = {}
    if answer is not None:
        iterations.append(_iteration("message", answer))
        usage.CopyFrom(answer)
        if answer.extra.dialect == DIALECT_ANTHROPIC:
            fields = orjson.loads(answer.extra.json)
    json = orjson.dumps({**fields, "iterations": iterations})
    usage.extra.CopyFrom(Opaque(dialect=DIALECT_ANTHROPIC, json=json))
    return usage


def _iteration(kind: str, usage: Usage) -> dict[str, Any]:
    return {"type": kind, **{name: getattr(usage, name) for name in _COUNTS}}
