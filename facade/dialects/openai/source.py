"""Decides which conversations go to a provider of this dialect as their caller wrote them. Pure.

Those in which the way there and back, by the canonical model, would change nothing that
counts: texts, calls of functions and their results, and functions as tools, in the usual
order. Whatever is refused, renamed, left out or moved on that way is not among them.

A conversation is looked at before it has been validated: one that goes as it is keeps to the wire
types, so it needs no other validation.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

from pydantic import SkipValidation

from facade.dialects.extensions import (
    EXTENSION_FIELDS,
    MAX_BLOCKS,
    MAX_MESSAGES,
    MAX_TOOL_CALLS,
    MAX_TOOLS,
)
from facade.dialects.openai.tools import is_name
from facade.dialects.openai.types import ChatRequest, Messages, Tool

_SPOKEN = frozenset({"role", "content"})
_ASSISTANTS = _SPOKEN | {"tool_calls"}
_RESULT = _SPOKEN | {"tool_call_id"}
_TEXT = frozenset({"type", "text"})
_CALL = frozenset({"id", "type", "function"})
_CALLED = frozenset({"name", "arguments"})
_TOOL = frozenset({"type", "function"})
_FUNCTION = frozenset({"name", "description", "parameters", "strict"})

# Beside the conversation, the fields that mean one thing to every server of the dialect, and
# that are right wherever their types are.
_SETTINGS = frozenset(
    {
        *("temperature", "top_p", "n", "seed", "presence_penalty", "frequency_penalty"),
        *("max_tokens", "max_completion_tokens"),
    }
)
_BESIDE = EXTENSION_FIELDS | {"model", "messages", "tools", "stream", "stream_options"}
_PLAIN = _SETTINGS | _BESIDE | {"tool_choice"}
_USAGE = frozenset({"include_usage"})


class SourcedChatRequest(ChatRequest):
    """A body whose conversation goes as its caller wrote it, which says that it is valid."""

    messages: SkipValidation[Messages]
    tools: SkipValidation[list[Tool] | None] = None


def plain_settings(wire: ChatRequest) -> dict[str, object] | None:
    """Return the fields beside a conversation, if they may go on as they are.

    Those of the stream are not among them. None where some are checked, renamed or left out.
    """
    if wire.model_extra or not wire.model_fields_set <= _PLAIN:
        return None
    held = wire.__dict__
    settings = {
        name: value
        for name in wire.model_fields_set
        if name not in _BESIDE and (value := held[name]) is not None
    }
    if "max_tokens" in settings and "max_completion_tokens" in settings:
        return None
    if "tool_choice" in settings and not (settings["tool_choice"] == "auto" and wire.tools):
        return None
    options = wire.stream_options
    return settings if options is None or options.keys() <= _USAGE else None


def source_of(body: Mapping[str, Any]) -> tuple[Mapping[str, object], bool] | None:
    """Return the fields of a conversation, and whether only OpenAI itself takes them so.

    None where it has to be validated and translated.

    Args:
        body: JSON that has not been validated.
    """
    messages = _messages(body.get("messages"))
    if messages is None:
        return None
    fields: dict[str, object] = {"messages": messages}
    tools = body.get("tools")
    if tools:
        if not _are_plain_tools(tools):
            return None
        fields["tools"] = tools
    elif tools not in (None, []):
        return None
    return fields, any(isinstance(one["content"], list) for one in messages)


def _messages(given: Any) -> list[Mapping[str, Any]] | None:
    if not isinstance(given, list) or not 0 < len(given) <= MAX_MESSAGES:
        return None
    messages: list[Mapping[str, Any]] = []
    follows_calls = False
    role = None
    for message in given:
        if not isinstance(message, dict):
            return None
        role = message.get("role")
        if role == "assistant":
            plain = _of_assistant(message)
            follows_calls = plain is not None and "tool_calls" in plain
        elif role == "tool":
            plain = _result(message) if follows_calls else None
        elif role == "user" or role == "system":
            plain = _spoken(message)
            follows_calls = False
        else:
            plain = None  # among them a role of OpenAI's own
        if plain is None:
            return None
        messages.append(plain)
    return None if role == "assistant" else messages  # one that is gone on with


def _spoken(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    content = message.get("content")
    if not content or message.keys() != _SPOKEN:
        return None
    if isinstance(content, str):
        return message
    texts = _texts(content)
    if texts is None:
        return None
    return {**message, "content": texts[0]} if len(texts) == 1 else message


def _result(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if message.keys() != _RESULT or not _is_filled(message["tool_call_id"]):
        return None
    content = message["content"]
    if isinstance(content, str):
        return message
    texts = _texts(content)
    return {**message, "content": texts[0]} if texts is not None and len(texts) == 1 else None


def _of_assistant(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if not message.keys() <= _ASSISTANTS and any(
        value is not None for name, value in message.items() if name not in _ASSISTANTS
    ):
        return None
    content, calls = message.get("content"), message.get("tool_calls")
    if content is not None and not isinstance(content, str):
        texts = _texts(content)
        if texts is None:
            return None
        content = "".join(texts)
    plain: dict[str, Any] = {"role": "assistant", "content": content or None}
    if calls:
        if not _are_plain_calls(calls):
            return None
        plain["tool_calls"] = calls
    elif not content or calls not in (None, []):
        return None
    return plain


def _are_plain_calls(calls: Any) -> bool:
    if not isinstance(calls, list) or len(calls) > MAX_TOOL_CALLS:
        return False
    for call in calls:
        if not (
            isinstance(call, dict)
            and call.keys() == _CALL
            and call["type"] == "function"
            and _is_filled(call["id"])
            and isinstance(function := call["function"], dict)
            and function.keys() == _CALLED
            and _is_filled(function["name"])
            and _is_filled(function["arguments"])
        ):
            return False
    return True


def _texts(parts: Any) -> list[str] | None:
    """Return the texts of parts that are nothing but text, none empty, else None."""
    if not isinstance(parts, list) or len(parts) > MAX_BLOCKS:
        return None
    texts: list[str] = []
    for part in parts:
        if not (
            isinstance(part, dict)
            and part.keys() == _TEXT
            and part["type"] == "text"
            and _is_filled(part["text"])
        ):
            return None
        texts.append(part["text"])
    return texts


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
