"""Parse parts of Anthropic's messages, whole or at their start in a stream. Pure."""

from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Opaque, Thinking, ToolUse, Usage
from gateway.inference.v1.inference_pb2 import Finish, Start
from services.inference.providers.bounds import dump, name_of, tokens
from services.inference.providers.finish_reasons import (
    ANTHROPIC_REASONS,
    canonical_reason,
)

Json = dict[str, Any]

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)
_NAMED_COUNTS = frozenset({*_COUNTS, "output_tokens_details"})
# Maximum bytes of JSON of unknown usage fields; each usage event repeats all of it.
_MAX_USAGE = 16 << 10
# The field of chats for thinking whose signature the provider needs back.
_IN_CHATS = "reasoning_details"
# Fields of a message that a stream contains at its end.
OF_THE_END = ("stop_details", "container", "context_management")
# Fields of a message that have a canonical counterpart.
OF_MESSAGES = ("id", "type", "role", "content", "model", "usage", "stop_reason", "stop_sequence")


class MalformedError(Exception):
    """Error raised if a provider's JSON does not have the structure that its API specifies."""


class FailedAnswerError(Exception):
    """Error raised if the stop reason of an answer reports a failure."""


def add_unknown_usage(usage: Usage, report: Json) -> None:
    """Add the unknown fields of a usage report."""
    if report.keys() <= _NAMED_COUNTS:
        return
    unknown_counts = {
        name: value
        for name, value in report.items()
        if name not in _NAMED_COUNTS and value is not None
    }
    if unknown_counts:
        usage.extra.json = _usage_json(unknown_counts)
        usage.extra.dialect = conversation_pb2.DIALECT_ANTHROPIC


def _usage_json(fields: Json) -> bytes:
    json = _dumped(fields, "usage")
    if len(json) > _MAX_USAGE:
        raise MalformedError("usage")
    return json


class Counts:
    """Usage accumulated from partial reports.

    Later values replace earlier ones, but counts never fall: some servers end with zeros.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._extra: Json = {}

    def add(self, holder: Json) -> None:
        """Add the field `usage` of a message or event."""
        report = holder.get("usage")
        for name, value in an_object({} if report is None else report, "usage").items():
            if value is None:
                continue
            if name in _COUNTS:
                self._raise(name, value)
            elif name == "output_tokens_details" and isinstance(value, dict):
                self._raise("reasoning_tokens", value.get("thinking_tokens", 0))
            else:
                self._extra[name] = value
        if self._extra:
            _usage_json(self._extra)

    def _raise(self, name: str, count: object) -> None:
        self._known[name] = max(self._known.get(name, 0), _count(count))

    def usage(self) -> Usage:
        """Return the usage so far."""
        usage = Usage(extra=_opaque_or_none(self._extra))
        for name, count in self._known.items():
            setattr(usage, name, count)
        return usage


def start_of(message: Json, but: tuple[str, ...] = ()) -> Start:
    """Return the start of an answer; the fields in `but` are reported at its end."""
    unknown_fields = {
        name: value for name, value in message.items() if name not in (*OF_MESSAGES, *but)
    }
    return Start(
        id=_name(message, "id"),
        model=_name(message, "model"),
        extra=_opaque_or_none(unknown_fields),
    )


def finish_of(holder: Json, unknown_fields: Json) -> Finish:
    """Return `stop_reason` and `stop_sequence` of `holder`, with the `unknown_fields`."""
    stop_reason = text_of(holder, "stop_reason")
    reason = canonical_reason(stop_reason)
    if reason is None:
        raise FailedAnswerError(stop_reason)
    extra = {name: value for name, value in unknown_fields.items() if name not in OF_MESSAGES}
    if stop_reason not in ANTHROPIC_REASONS:
        extra["stop_reason"] = stop_reason
    return Finish(
        reason=reason,
        stop_sequence=text_of(holder, "stop_sequence"),
        extra=_opaque_or_none(extra),
    )


def block_of(fields: Json) -> Block:
    """Return a content block, whole or at its start in a stream."""
    kind = fields.get("type")
    if kind == "text":
        return Block(text=text_of(fields, "text"), extra=_rest(fields, "text"))
    if kind == "thinking":
        thinking = Thinking(
            text=text_of(fields, "thinking"),
            signature=text_of(fields, "signature"),
            field=_IN_CHATS,
        )
        return Block(thinking=thinking, extra=_rest(fields, "thinking", "signature"))
    if kind == "redacted_thinking":
        return Block(redacted_thinking=text_of(fields, "data"), extra=_rest(fields, "data"))
    if kind == "tool_use":
        arguments = an_object(fields.get("input") or {}, "input")
        call = ToolUse(
            id=_required_text(fields, "id"),
            name=_required_text(fields, "name"),
            input=_dumped(arguments, "input").decode() if arguments else "",
        )
        return Block(tool_use=call, extra=_rest(fields, "id", "name", "input"))
    if not isinstance(kind, str) or not kind:
        raise MalformedError("content_block.type")
    return Block(opaque=opaque(fields))


def _required_text(fields: Json, name: str) -> str:
    """Return a text without which a call cannot be answered."""
    text = text_of(fields, name)
    if not text:
        raise MalformedError(f"content_block.{name}")
    return text


def _rest(fields: Json, *named: str) -> Opaque | None:
    if fields.keys() == {"type", *named}:
        return None
    unknown_fields = {
        name: value for name, value in fields.items() if name != "type" and name not in named
    }
    return _opaque_or_none(unknown_fields)


def _opaque_or_none(fields: Json) -> Opaque | None:
    """Return the fields that are not null, None if there are none."""
    if not fields:
        return None
    kept = {name: value for name, value in fields.items() if value is not None}
    return opaque(kept) if kept else None


def opaque(value: Json) -> Opaque:
    """Return an object of an unknown type as its JSON."""
    kept = _dumped(value, "fields")
    return Opaque(dialect=conversation_pb2.DIALECT_ANTHROPIC, json=kept)


def _dumped(value: Json, name: str) -> bytes:
    try:
        return dump(value)
    except ValueError as error:
        raise MalformedError(name) from error


def an_object(value: Any, name: str) -> Json:
    """Return the value of a field that must be an object."""
    if not isinstance(value, dict):
        raise MalformedError(name)
    return value


def text_of(holder: Json, name: str) -> str:
    """Return a string field, "" if it is absent or null."""
    value = holder.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedError(name)
    return value


def _name(holder: Json, name: str) -> str:
    try:
        return name_of(text_of(holder, name))
    except ValueError as error:
        raise MalformedError(name) from error


def _count(value: object) -> int:
    try:
        return tokens(value)
    except ValueError as error:
        raise MalformedError("usage") from error
