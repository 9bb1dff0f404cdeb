"""Selects conversations that are passed to a provider of this dialect as written. Pure.

A conversation qualifies if translation to the canonical request and back would change nothing
relevant: texts, tool calls and their results, signed thinking, and tools with unique names, in
alternating turns. It must contain nothing that translation rejects, drops, merges or moves.

Conversations are checked before validation: one that qualifies matches the wire types, so it needs
no other validation.
"""

import binascii
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, TypeGuard

import orjson
from msgspec import UNSET, DecodeError, Meta, Raw, Struct, UnsetType
from msgspec.json import Decoder, encode
from pydantic import ConfigDict

from facade.dialects.anthropic.messages import starts_with_billing
from facade.dialects.anthropic.types import (
    MAX_TOOL_NAME,
    MessagesBody,
)
from facade.dialects.extensions import EXTENSION_FIELDS
from facade.dialects.field_types import MAX_BLOCKS, MAX_MESSAGES, MAX_TOOLS
from facade.dialects.verbatim import (
    NULL,
    Filled,
    Verbatim,
    has_words,
    is_text,
    rewritten,
    text_of,
    tools_reader,
)

# Field that marks the end of a cached prompt, and its members.
_MARK = "cache_control"
_USUAL_MARK = {"type": "ephemeral"}
_OF_MARKS = frozenset({"type", "ttl", "scope"})
# Fields of a tool that refer to nothing stored at a provider, and to no other model.
_OF_TOOLS = frozenset(
    {
        *("name", "description", "input_schema", "strict", "input_examples", _MARK),
        *("defer_loading", "eager_input_streaming", "allowed_callers"),
    }
)

# Fields beside the conversation that mean the same to every server of the dialect, and that need
# no check other than that of their types.
_SETTINGS = frozenset({"max_tokens", "temperature", "top_p", "top_k"})
_BESIDE = EXTENSION_FIELDS | {"model", "messages", "system", "tools", "stream"}
_PLAIN = _SETTINGS | _BESIDE | {"tool_choice"}
_AUTO = {"type": "auto"}


class PartialMessagesBody(MessagesBody):
    """A body without its conversation, which is read separately; requests may share it."""

    model_config = ConfigDict(frozen=True)

    messages: Any = None
    system: Any = None
    tools: Any = None

    @cached_property
    def settings(self) -> Mapping[str, Any] | None:
        """The fields beside the conversation of a request with tools, if they are plain.

        Plain fields can be passed on as they are: translation would check, rename and drop none.
        """
        if self.model_extra or not self.model_fields_set <= _PLAIN:
            return None
        held = self.__dict__
        settings = {
            name: value
            for name in self.model_fields_set
            if name not in _BESIDE and (value := held[name]) is not None
        }
        if settings.get("tool_choice", _AUTO) != _AUTO:
            return None
        return settings if "max_tokens" in settings else None


class _Mark(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    type: str
    ttl: str | UnsetType = UNSET
    scope: str | UnsetType = UNSET


class _Marked(Struct, forbid_unknown_fields=True, gc=False):
    cache_control: _Mark | UnsetType = UNSET


class _Text(_Marked, kw_only=True):
    text: Raw


class _Part(_Text, kw_only=True):
    type: Literal["text"]


class _TextBlock(_Text, tag_field="type", tag="text", kw_only=True):
    pass


class _Thinking(Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True, gc=False):
    thinking: Raw
    signature: Filled


class _Call(_Marked, tag_field="type", tag="tool_use", kw_only=True):
    id: Filled
    name: Filled
    input: Raw


class _Result(_Marked, tag_field="type", tag="tool_result", kw_only=True):
    tool_use_id: Filled
    content: Raw | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET


_OfUser = _TextBlock | _Result
_OfAssistant = _TextBlock | _Call | _Thinking
_Blocks = Meta(min_length=1, max_length=MAX_BLOCKS)


class _User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    content: Filled | Annotated[list[_OfUser], _Blocks]


class _Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    content: Filled | Annotated[list[_OfAssistant], _Blocks]


_Message = _User | _Assistant
_MESSAGES = Decoder(Annotated[list[_Message], Meta(min_length=1, max_length=MAX_MESSAGES)])
_PARTS = Decoder(Annotated[list[_Part], Meta(max_length=MAX_BLOCKS)])


def verbatim_of(fields: Mapping[str, Raw]) -> Verbatim | None:
    """Return the conversation of a body; None if it must be validated and translated.

    Args:
        fields: the fields of the body, not validated.
    """
    messages_json = fields.get("messages", NULL)
    try:
        messages = _MESSAGES.decode(messages_json)
        thinks = _normalize(messages)
        system = _plain_system(fields["system"]) if "system" in fields else (b"", False)
    except (DecodeError, RecursionError):
        return None
    tools = _plain_tools(fields["tools"]) if "tools" in fields else b""
    if thinks is None or system is None or tools is None:
        return None
    sent = {"messages": orjson.Fragment(encode(messages))}
    parts = {"messages": bytes(messages_json)}
    written, has_billing = system
    for name, json in (("system", written), ("tools", tools)):
        if json:
            sent[name] = orjson.Fragment(json)
            parts[name] = json
    return sent, parts, has_billing or thinks


def _normalize(messages: Sequence[_Message]) -> bool | None:
    """Normalize blocks to the form that is sent; return whether there is thinking.

    Return None unless all messages are plain, and user and assistant alternate, the user first
    and last.
    """
    thinks = False
    for index, message in enumerate(messages):
        if isinstance(message.content, str) and message.content.isspace():
            return None
        if isinstance(message, _Assistant):
            if index % 2 == 0:
                return None
            has_thinking = (
                False if isinstance(message.content, str) else _normalize_calls(message.content)
            )
            if has_thinking is None:
                return None
            thinks = thinks or has_thinking
        elif index % 2 or not (
            isinstance(message.content, str) or _normalize_results(message.content)
        ):
            return None
    return thinks if len(messages) % 2 else None


def _normalize_results(blocks: Sequence[_OfUser]) -> bool:
    """Normalize a user's blocks to the form that is sent; return whether results precede texts."""
    has_text = False
    for block in blocks:
        if isinstance(block, _TextBlock):
            has_text = True
            if not _is_plain_text(block):
                return False
        elif has_text or not _normalize_result(block):
            return False
    return True


def _normalize_result(block: _Result) -> bool:
    content = block.content
    if content is UNSET:
        return True
    if is_text(content):
        return not text_of(content).isspace()
    parts = _parts(content)
    if not parts:
        return False
    block.content = Raw(encode(parts))
    return True


def _normalize_calls(blocks: Sequence[_OfAssistant]) -> bool | None:
    """Normalize an assistant's blocks to the form that is sent; return whether there is thinking.

    Return None if a block is not plain.
    """
    thinks = False
    for block in blocks:
        if isinstance(block, _TextBlock):
            if not _is_plain_text(block):
                return None
        elif isinstance(block, _Call):
            written = rewritten(block.input)
            if written is None:
                return None
            block.input = written
        elif is_text(block.thinking) and _is_signature(block.signature):
            thinks = True
        else:
            return None
    return thinks


def _plain_system(system_json: Raw) -> tuple[bytes, bool] | None:
    """Return the JSON of the system prompt, or b"", and whether it has a billing line.

    Return None if the system prompt is not plain.
    """
    if system_json == NULL:
        return b"", False
    if is_text(system_json):
        text = text_of(system_json)
        if text.isspace():
            return None  # only some providers take it
        return bytes(system_json) if text else b"", starts_with_billing(text)
    parts = _parts(system_json)
    if not parts:
        return None if parts is None else (b"", False)
    return encode(parts), starts_with_billing(text_of(parts[0].text))


def _parts(content: Raw) -> list[_Part] | None:
    """Return the parts of a content if all are plain texts and not empty, else None."""
    parts = _PARTS.decode(content)
    return parts if all(map(_is_plain_text, parts)) else None


def _is_plain_text(text: _Text) -> bool:
    return has_words(text.text)


def _is_signature(signature: str) -> bool:
    try:
        return bool(binascii.a2b_base64(signature.encode(), strict_mode=True))
    except ValueError:
        return False


def _are_plain_tools(tools: Any) -> bool:
    """Return whether translation would drop nothing; it drops empty texts and nulls."""
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS:
        return False
    names = set()
    for tool in tools:
        if not (
            isinstance(tool, dict)
            and tool.keys() <= _OF_TOOLS
            and _is_filled(name := tool.get("name"))
            and len(name) <= MAX_TOOL_NAME
            and isinstance(schema := tool.get("input_schema"), dict)
            and schema
            and _is_filled(tool.get("description", "none"))
            and isinstance(tool.get("strict", True), bool)
            and isinstance(tool.get("defer_loading", True), bool)
            and isinstance(tool.get("eager_input_streaming", True), bool)
            and _are_texts(tool.get("allowed_callers", ()))
            and _is_plain_mark(tool.get(_MARK, _USUAL_MARK))
        ):
            return False
        names.add(name)
    return len(names) == len(tools)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(one, str) for one in values)


def _is_plain_mark(mark: Any) -> bool:
    return (
        isinstance(mark, dict)
        and "type" in mark
        and mark.keys() <= _OF_MARKS
        and _are_texts([*mark.values()])
    )


def _is_filled(text: Any) -> TypeGuard[str]:
    return isinstance(text, str) and text != ""


_plain_tools = tools_reader(_are_plain_tools)
