"""Selects conversations that are passed to a provider of this dialect as written. Pure.

A conversation qualifies if translation to the canonical request and back would change nothing
relevant: texts, tool calls and their outputs, and reasoning that such a provider encrypted. It must
contain nothing that the gateway rejects, drops, fetches or adapts.

Conversations are checked before validation: one that qualifies matches the wire types, so it needs
no other validation.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeGuard

import orjson
from msgspec import UNSET, DecodeError, Meta, Raw, Struct, UnsetType
from msgspec.json import Decoder, encode
from pydantic import ConfigDict

from facade.dialects.extensions import EXTENSION_FIELDS
from facade.dialects.field_types import MAX_BLOCKS, MAX_MESSAGES, MAX_TOOLS
from facade.dialects.openai.tools import is_name
from facade.dialects.responses.types import ResponseRequest
from facade.dialects.verbatim import (
    NULL,
    Filled,
    Verbatim,
    is_filled,
    is_text,
    rewritten,
    tools_reader,
)

_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"type", "name", "description", "format"})
# Fields of any other tool that refer to nothing stored at a provider, and to no other model.
_HOSTED = frozenset({"type", "output_format"})
_FORMAT = frozenset({"type", "syntax", "definition"})
# Prefix of OpenAI's encrypted reasoning (Fernet, version 128).
_ENCRYPTED = b'"gAAAA'
_QUOTE = b'"'
_EMPTY = b'""'

# Fields beside the conversation that mean the same to every server of the dialect, and that need
# no check other than that of their types.
_SETTINGS = frozenset(
    {
        *("max_output_tokens", "temperature", "top_p", "parallel_tool_calls", "metadata"),
        *("prompt_cache_key", "safety_identifier"),
    }
)
_BESIDE = EXTENSION_FIELDS | {"model", "input", "instructions", "tools"}
_PLAIN = _SETTINGS | _BESIDE | {"stream", "store", "background", "tool_choice"}


class PartialResponseRequest(ResponseRequest):
    """A body without its conversation, which is read separately; requests may share it."""

    model_config = ConfigDict(frozen=True)

    input: Any = None
    tools: Any = None

    @cached_property
    def settings(self) -> Mapping[str, Any] | None:
        """The fields beside the conversation of a request with tools, if they are plain.

        Plain fields can be passed on as they are: translation would check, rename and drop none.
        """
        set_fields = self.model_fields_set
        if self.model_extra or not set_fields <= _PLAIN:
            return None
        held = self.__dict__
        settings = {
            name: value for name in set_fields & _SETTINGS if (value := held[name]) is not None
        }
        choice = held["tool_choice"]
        if choice is not None:
            if choice != "auto":
                return None
            settings["tool_choice"] = choice
        return settings


class _Part(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["input_text"]
    text: Raw


class _OutputPart(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["output_text"]
    text: Raw
    annotations: Raw | UnsetType = UNSET
    logprobs: Raw | UnsetType = UNSET


class _ReasoningPart(Struct, forbid_unknown_fields=True, gc=False):
    type: Filled
    text: Raw | UnsetType = UNSET


class _Item(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """An item of any type; an item without a type is a message. Null means absent."""

    type: (
        Literal[
            "message",
            "function_call",
            "function_call_output",
            "custom_tool_call",
            "custom_tool_call_output",
            "reasoning",
        ]
        | None
    ) = None
    id: str | None = None
    status: str | None = None
    phase: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: Raw | UnsetType = UNSET
    call_id: Filled | None = None
    name: Filled | None = None
    arguments: Raw | UnsetType = UNSET
    input: Raw | UnsetType = UNSET
    output: Raw | UnsetType = UNSET
    summary: Raw | UnsetType = UNSET
    encrypted_content: Raw | UnsetType = UNSET


_Blocks = Meta(min_length=1, max_length=MAX_BLOCKS)
_ITEMS = Decoder(Annotated[list[_Item], Meta(min_length=1, max_length=MAX_MESSAGES)])
_PARTS = Decoder(Annotated[list[_Part], _Blocks])
_OUTPUT_PARTS = Decoder(Annotated[list[_OutputPart], _Blocks])
_REASONING_PARTS = Decoder(list[_ReasoningPart])


def verbatim_of(fields: Mapping[str, Raw]) -> Verbatim | None:
    """Return the conversation of a body; None if it must be validated and translated.

    Args:
        fields: the fields of the body, not validated.
    """
    input_json = bytes(fields.get("input", NULL))
    try:
        written = _written(input_json)
    except (DecodeError, RecursionError):
        return None
    tools = _plain_tools(fields["tools"]) if "tools" in fields else b""
    if not written or tools is None:
        return None
    sent = {"input": orjson.Fragment(written)}
    parts = {"input": input_json}
    if tools:
        sent["tools"] = orjson.Fragment(tools)
        parts["tools"] = tools
    return sent, parts, False


def _written(input_json: bytes) -> bytes:
    """Return the JSON of the input in the form that is sent; b"" if it is not plain."""
    if input_json.startswith(_QUOTE):
        return input_json if input_json != _EMPTY else b""
    items = _ITEMS.decode(input_json)
    for item in items:
        if not _normalize(item):
            return b""
    if items[-1].role == "assistant":
        return b""  # a message that the model continues
    return encode(items)


def _normalize(item: _Item) -> bool:
    """Normalize an item to the form that is sent; return whether it is plain."""
    kind = item.type or "message"
    foreign, nothing = _FOREIGN[kind]
    if foreign(item) != nothing:
        return False
    match kind:
        case "message":
            if item.role == "assistant":
                return _normalize_assistant(item)
            return item.role is not None and _normalize_text(item, "content")
        case "function_call":
            return _is_call(item) and item.arguments is not UNSET and is_filled(item.arguments)
        case "custom_tool_call":
            return _is_call(item) and item.input is not UNSET and is_text(item.input)
        case "reasoning":
            proof = item.encrypted_content
            return (
                proof is not UNSET
                and bytes(proof).startswith(_ENCRYPTED)
                and _normalize_reasoning(item, "summary")
                and _normalize_reasoning(item, "content")
            )
    output = item.output
    return (
        item.call_id is not None
        and output is not UNSET
        and (is_text(output) or _normalize_text(item, "output"))
    )


def _is_call(item: _Item) -> bool:
    return item.call_id is not None and item.name is not None


def _normalize_text(item: _Item, name: str) -> bool:
    """Normalize content to the form that is sent; return whether all of it are non-empty texts."""
    content = getattr(item, name)
    if content is UNSET or is_filled(content):
        return content is not UNSET
    parts = _PARTS.decode(content)
    for part in parts:
        if not is_filled(part.text):
            return False
    setattr(item, name, Raw(encode(parts)))
    return True


def _normalize_assistant(item: _Item) -> bool:
    """Normalize the content of an assistant's message; see `_normalize_text`."""
    content = item.content
    if content is UNSET or is_filled(content):
        return content is not UNSET
    parts = _OUTPUT_PARTS.decode(content)
    for part in parts:
        if not is_filled(part.text):
            return False
        for name in ("annotations", "logprobs"):
            value = getattr(part, name)
            if value is not UNSET:
                normalized = rewritten(value, list)
                if normalized is None:
                    return False
                setattr(part, name, normalized)
    item.content = Raw(encode(parts))
    return True


def _normalize_reasoning(item: _Item, name: str) -> bool:
    """Normalize reasoning to the form that is sent; return whether all of its parts are texts."""
    value = getattr(item, name)
    if value is UNSET or value == NULL:
        return True
    parts = _REASONING_PARTS.decode(value)
    for one in parts:
        if one.text is not UNSET and not is_text(one.text):
            return False
    setattr(item, name, Raw(encode(parts)))
    return True


# Fields of items by type, beside the fields of all types.
_OF_TYPES = {
    "message": ("role", "content", "phase"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "reasoning": ("summary", "content", "encrypted_content"),
}
_OF_ALL = ("type", "id", "status")


def _foreign_to(kind: str) -> tuple[Callable[[_Item], object], object]:
    """Return a getter of the fields of other types, and its result if all of them are absent."""
    known_fields = {*_OF_ALL, *_OF_TYPES[kind]}
    read = attrgetter(*[name for name in _Item.__struct_fields__ if name not in known_fields])
    return read, read(_Item())


_FOREIGN = {kind: _foreign_to(kind) for kind in _OF_TYPES}


def _are_plain_tools(tools: Any) -> bool:
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS:
        return False
    names = []
    for tool in tools:
        if not (isinstance(tool, dict) and _is_plain_tool(tool)):
            return False
        if "name" in tool:
            names.append(tool["name"])
    return len(set(names)) == len(names)


def _is_plain_tool(tool: Mapping[str, Any]) -> bool:
    kind, name = tool.get("type"), tool.get("name")
    if kind == "function" or kind == "custom":
        if not (isinstance(name, str) and is_name(name)):
            return False
        if kind == "custom":
            form = tool.get("format", {})
            return (
                tool.keys() <= _CUSTOM
                and isinstance(tool.get("description", ""), str)
                and isinstance(form, dict)
                and form.keys() <= _FORMAT
                and all(isinstance(value, str) for value in form.values())
            )
        return (
            tool.keys() <= _FUNCTION
            and isinstance(tool.get("description", ""), str | None)
            and isinstance(tool.get("parameters"), dict | None)
            and isinstance(tool.get("strict"), bool | None)
        )
    # The gateway may search in place of the provider.
    return (
        _is_filled(kind)
        and not kind.startswith("web_search")
        and tool.keys() <= _HOSTED
        and isinstance(tool.get("output_format", ""), str)
    )


def _is_filled(text: Any) -> TypeGuard[str]:
    return isinstance(text, str) and text != ""


_plain_tools = tools_reader(_are_plain_tools)
