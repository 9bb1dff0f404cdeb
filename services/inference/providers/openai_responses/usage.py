"""Token counts of OpenAI's responses. Pure."""

from typing import Annotated

from msgspec import Meta, Struct

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Opaque, Usage
from services.common.messages.passthrough_answer import TokenCounts
from services.inference.providers.bounds import MAX_TOKENS, dump, tokens
from services.inference.providers.opaque_json import Json

# Maximum bytes of JSON of unknown usage fields.
_MAX_USAGE = 16 << 10
_NAMED = frozenset(
    {
        *("input_tokens", "output_tokens", "total_tokens"),
        *("input_tokens_details", "output_tokens_details"),
    }
)
_OF_READ = frozenset({"cached_tokens", "cache_write_tokens"})
_OF_WRITTEN = frozenset({"reasoning_tokens"})


_Tokens = Annotated[int, Meta(ge=0, lt=MAX_TOKENS)]


class _Read(Struct, forbid_unknown_fields=True, gc=False):
    cached_tokens: _Tokens = 0
    cache_write_tokens: _Tokens = 0


class _Written(Struct, forbid_unknown_fields=True, gc=False):
    reasoning_tokens: _Tokens = 0


class UsageReport(Struct, forbid_unknown_fields=True, gc=False):
    """A usage report with the usual fields; see `read_usage` for any other."""

    input_tokens: _Tokens
    output_tokens: _Tokens
    total_tokens: _Tokens = 0
    input_tokens_details: _Read | None = None
    output_tokens_details: _Written | None = None

    def counts(self) -> TokenCounts:
        """Return the token counts."""
        read, written = self.input_tokens_details, self.output_tokens_details
        cached = stored = 0
        if read is not None:
            cached, stored = read.cached_tokens, read.cache_write_tokens
        return TokenCounts(
            max(0, self.input_tokens - cached - stored),
            self.output_tokens,
            cached,
            stored,
            0 if written is None else written.reasoning_tokens,
        )


def read_usage(report: Json, usage: Usage) -> None:
    """Set the token counts of a report in an empty `usage`.

    The report's input tokens include cached ones.

    Raises:
        ValueError: a count is invalid, or the unknown fields are too large.
    """
    read: Json = report.get("input_tokens_details") or {}
    written: Json = report.get("output_tokens_details") or {}
    total = tokens(report.get("input_tokens") or 0)
    usage.output_tokens = tokens(report.get("output_tokens") or 0)
    cached = stored = 0
    if read:
        cached = tokens(read.get("cached_tokens") or 0)
        stored = tokens(read.get("cache_write_tokens") or 0)
        if cached or stored:
            usage.cache_read_input_tokens = cached
            usage.cache_creation_input_tokens = stored
    usage.input_tokens = max(0, total - cached - stored)
    if reasoning := written.get("reasoning_tokens"):
        usage.reasoning_tokens = tokens(reasoning)
    if report.keys() <= _NAMED and read.keys() <= _OF_READ and written.keys() <= _OF_WRITTEN:
        return
    read = {name: value for name, value in read.items() if name not in _OF_READ}
    written = {name: value for name, value in written.items() if name not in _OF_WRITTEN}
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
