"""Token counts of OpenAI's responses. Pure."""

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Opaque, Usage
from services.inference.providers.bounds import dump, tokens
from services.inference.providers.request_fields import Json

# Bytes of JSON that usage without a name may have.
_MAX_USAGE = 16 << 10
_NAMED = frozenset(
    {
        *("input_tokens", "output_tokens", "total_tokens"),
        *("input_tokens_details", "output_tokens_details"),
    }
)


def read_usage(report: Json, usage: Usage) -> None:
    """Add token counts to `usage`; `input_tokens` include those that came from the cache.

    Raises:
        ValueError: a count is none, or what has no name is too much.
    """
    read: Json = {**(report.get("input_tokens_details") or {})}
    written: Json = {**(report.get("output_tokens_details") or {})}
    total = tokens(report.get("input_tokens") or 0)
    cached = tokens(read.pop("cached_tokens", None) or 0)
    stored = tokens(read.pop("cache_write_tokens", None) or 0)
    usage.input_tokens = max(0, total - cached - stored)
    usage.output_tokens = tokens(report.get("output_tokens") or 0)
    usage.cache_read_input_tokens = cached
    usage.cache_creation_input_tokens = stored
    usage.reasoning_tokens = tokens(written.pop("reasoning_tokens", None) or 0)
    further = {name: value for name, value in report.items() if name not in _NAMED}
    further |= _non_empty({"input_tokens_details": _non_empty(read)})
    further |= _non_empty({"output_tokens_details": _non_empty(written)})
    if further := {name: value for name, value in further.items() if value is not None}:
        json = dump(further)
        if len(json) > _MAX_USAGE:
            raise ValueError("too much usage")
        usage.extra.CopyFrom(Opaque(dialect=DIALECT_RESPONSES, json=json))


def _non_empty(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value}
