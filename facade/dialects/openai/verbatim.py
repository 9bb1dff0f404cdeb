"""Selects conversations that are passed to a provider of this dialect as written. Pure.

A conversation qualifies if translation to the canonical request and back would change nothing
relevant: texts, function calls and their results, and functions as tools, in the usual order. It
must contain nothing that translation rejects, renames, drops or moves.

Conversations are checked before validation: one that qualifies matches the wire types, so it needs
no other validation.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, TypeGuard

import orjson
from msgspec import UNSET, DecodeError, Meta, Raw, Struct, UnsetType
from msgspec.json import Decoder, encode
from pydantic import ConfigDict

from facade.dialects.extensions import EXTENSION_FIELDS
from facade.dialects.field_types import MAX_BLOCKS, MAX_MESSAGES, MAX_TOOL_CALLS, MAX_TOOLS
from facade.dialects.openai.tools import is_name
from facade.dialects.openai.types import ChatRequest
from facade.dialects.verbatim import (
    NULL,
    Filled,
    Verbatim,
    is_filled,
    is_text,
    text_of,
    tools_reader,
)

_TOOL = frozenset({"type", "function"})
_FUNCTION = frozenset({"name", "description", "parameters", "strict"})

# Fields beside the conversation that mean the same to every server of the dialect, and that need
# no check other than that of their types.
_SETTINGS = frozenset(
    {
        *("temperature", "top_p", "n", "seed", "presence_penalty", "frequency_penalty"),
        *("max_tokens", "max_completion_tokens"),
    }
)
_BESIDE = EXTENSION_FIELDS | {"model", "messages", "tools", "stream", "stream_options"}
_PLAIN = _SETTINGS | _BESIDE | {"tool_choice"}
_USAGE = frozenset({"include_usage"})


class PartialChatRequest(ChatRequest):
    """A body without its conversation, which is read separately; requests may share it."""

    model_config = ConfigDict(frozen=True)

    messages: Any = None
    tools: Any = None

    @cached_property
    def settings(self) -> Mapping[str, Any] | None:
        """The fields beside the conversation of a request with tools, if they are plain.

        Plain fields can be passed on as they are: translation would check, rename and drop none.
        Fields about streaming are left out.
        """
        if self.model_extra or not self.model_fields_set <= _PLAIN:
            return None
        held = self.__dict__
        settings = {
            name: value
            for name in self.model_fields_set
            if name not in _BESIDE and (value := held[name]) is not None
        }
        if "max_tokens" in settings and "max_completion_tokens" in settings:
            return None
        if settings.get("tool_choice", "auto") != "auto":
            return None
        options = self.stream_options
        return settings if options is None or options.keys() <= _USAGE else None


class _Part(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["text"]
    text: Raw


class _WithContent(Struct, tag_field="role", forbid_unknown_fields=True, gc=False):
    content: Raw


class _User(_WithContent, tag="user"):
    pass


class _System(_WithContent, tag="system"):
    pass


class _Result(_WithContent, tag="tool"):
    tool_call_id: Filled


class _Called(Struct, forbid_unknown_fields=True, gc=False):
    name: Filled
    arguments: Raw


class _Call(Struct, forbid_unknown_fields=True, gc=False):
    id: Filled
    type: Literal["function"]
    function: _Called


class _Assistant(
    Struct,
    tag_field="role",
    tag="assistant",
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    content: Raw | UnsetType = UNSET
    tool_calls: Annotated[list[_Call], Meta(max_length=MAX_TOOL_CALLS)] | None = None
    # Further fields of answers, which clients send back; null means absent.
    refusal: None = None
    annotations: None = None
    audio: None = None
    function_call: None = None
    name: None = None
    reasoning_content: None = None


_Message = _User | _System | _Result | _Assistant
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
        if isinstance(messages[-1], _Assistant):
            return None  # a message that the model continues
        requires_official_api = _normalize(messages)
    except (DecodeError, RecursionError):
        return None
    if requires_official_api is None:
        return None
    sent = {"messages": orjson.Fragment(encode(messages))}
    parts = {"messages": bytes(messages_json)}
    tools = _plain_tools(fields["tools"]) if "tools" in fields else b""
    if tools is None:
        return None
    if tools:
        sent["tools"] = orjson.Fragment(tools)
        parts["tools"] = tools
    return sent, parts, requires_official_api


def _normalize(messages: Sequence[_Message]) -> bool | None:
    """Normalize contents to the form that is sent; return whether some content is a list.

    Return None if a message is not plain.
    """
    follows_calls = has_lists = False
    for message in messages:
        if isinstance(message, _Assistant):
            follows_calls = bool(message.tool_calls)
            if not _normalize_assistant(message):
                return None
            continue
        if isinstance(message, _Result):
            if not follows_calls:
                return None
            if is_text(message.content):
                continue
        else:
            follows_calls = False
            if is_filled(message.content):
                continue
        parts = _parts(message.content)
        if not parts:
            return None
        if len(parts) == 1:
            message.content = parts[0].text
        elif isinstance(message, _Result):
            return None
        else:
            message.content = Raw(encode(parts))
            has_lists = True
    return has_lists


def _normalize_assistant(message: _Assistant) -> bool:
    """Normalize an assistant's content to the form that is sent; return whether it is plain."""
    content = message.content
    if content is UNSET or content == NULL:
        texts = NULL
    elif is_text(content):
        texts = content if is_filled(content) else NULL
    else:
        parts = _parts(content)
        if parts is None:
            return False
        if len(parts) == 1:
            texts = parts[0].text
        else:
            texts = Raw(encode("".join(text_of(part.text) for part in parts))) if parts else NULL
    message.content = texts
    if not message.tool_calls:
        message.tool_calls = None
        return texts is not NULL
    for call in message.tool_calls:
        if not is_filled(call.function.arguments):
            return False
    return True


def _parts(content: Raw) -> list[_Part] | None:
    """Return the parts of a content if all are texts and not empty, else None."""
    parts = _PARTS.decode(content)
    return parts if all(is_filled(part.text) for part in parts) else None


def _are_plain_tools(tools: Any) -> bool:
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS:
        return False
    names = set()
    for tool in tools:
        if not (
            isinstance(tool, dict)
            and tool.keys() == _TOOL
            and tool["type"] == "function"
            and isinstance(function := tool["function"], dict)
            and function.keys() <= _FUNCTION
            and isinstance(parameters := function.get("parameters"), dict)
            and parameters
            and _is_filled(function.get("description", "none"))
            and isinstance(function.get("strict", True), bool)
            and isinstance(name := function.get("name"), str)
            and is_name(name)
        ):
            return False
        names.add(name)
    return len(names) == len(tools)


def _is_filled(text: Any) -> TypeGuard[str]:
    return isinstance(text, str) and text != ""


_plain_tools = tools_reader(_are_plain_tools)
