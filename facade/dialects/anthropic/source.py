"""Decides which conversations go to a provider of this dialect as their caller wrote them. Pure.

Those in which the way there and back, by the canonical model, would change nothing that
counts: texts, calls of tools and their results, signed thinking, and tools of unique names,
in turns. Whatever is refused, left out, merged or moved on that way is not among them.

A conversation is looked at before it has been validated: one that goes as it is keeps to the wire
types, so it needs no other validation.
"""

import binascii
from collections.abc import Mapping
from typing import Any, TypeGuard

from pydantic import SkipValidation

from facade.dialects.anthropic.messages import starts_with_billing
from facade.dialects.anthropic.types import (
    MAX_TOOL_NAME,
    CountTokensBody,
    Messages,
    MessagesBody,
    System,
    Tool,
)
from facade.dialects.extensions import EXTENSION_FIELDS, MAX_BLOCKS, MAX_MESSAGES, MAX_TOOLS

_MESSAGE = frozenset({"role", "content"})
# Of the prompt's cache.
_MARK = "cache_control"
_TEXT = frozenset({"type", "text", _MARK})
_THINKING = frozenset({"type", "thinking", "signature"})
_CALL = frozenset({"type", "id", "name", "input", _MARK})
_RESULT = frozenset({"type", "tool_use_id", "content", "is_error", _MARK})

# Beside the conversation, the fields that mean one thing to every server of the dialect, and
# that are right wherever their types are.
_SETTINGS = frozenset({"max_tokens", "temperature", "top_p", "top_k"})
_BESIDE = EXTENSION_FIELDS | {"model", "messages", "system", "tools", "stream"}
_PLAIN = _SETTINGS | _BESIDE | {"tool_choice"}
_AUTO = {"type": "auto"}


class SourcedMessagesBody(MessagesBody):
    """A body whose conversation goes as its caller wrote it, which says that it is valid."""

    messages: SkipValidation[Messages]
    system: SkipValidation[System | None] = None
    tools: SkipValidation[list[Tool] | None] = None


def plain_settings(body: CountTokensBody) -> dict[str, Any] | None:
    """Return the fields beside a conversation, if they may go on as they are.

    None where some are checked, renamed or left out.
    """
    if body.model_extra or not body.model_fields_set <= _PLAIN:
        return None
    held = body.__dict__
    settings = {
        name: value
        for name in body.model_fields_set
        if name not in _BESIDE and (value := held[name]) is not None
    }
    if "tool_choice" in settings and not (settings["tool_choice"] == _AUTO and body.tools):
        return None
    return settings if "max_tokens" in settings else None


def source_of(body: Mapping[str, Any]) -> tuple[Mapping[str, object], bool] | None:
    """Return the fields of a conversation, and whether only Anthropic itself takes them so.

    None where it has to be validated and translated.

    Args:
        body: JSON that has not been validated.
    """
    messages, system, tools = body.get("messages"), body.get("system"), body.get("tools")
    if not (_are_plain(messages) and _is_plain_system(system) and _are_plain_tools(tools)):
        return None
    fields: dict[str, object] = {"messages": messages}
    if system:
        fields["system"] = system
    if tools:
        fields["tools"] = tools
    return fields, _has_billing(system) or _thinks(messages)


def _has_billing(system: Any) -> bool:
    if not system:
        return False
    return starts_with_billing(system if isinstance(system, str) else system[0]["text"])


def _is_plain_system(system: Any) -> bool:
    return system is None or isinstance(system, str) or system == [] or _are_texts(system)


def _are_plain(messages: Any) -> bool:
    """Return whether each message is plain, and user and assistant alternate, the user last."""
    if not isinstance(messages, list) or len(messages) > MAX_MESSAGES:
        return False
    expected, other = "user", "assistant"
    for message in messages:
        if not (
            isinstance(message, dict)
            and message.get("role") == expected
            and message.keys() == _MESSAGE
            and (content := message["content"])
        ):
            return False
        expected, other = other, expected
        if isinstance(content, str):
            continue
        if not isinstance(content, list) or len(content) > MAX_BLOCKS:
            return False
        if expected == "assistant":
            if not _are_of_user(content):
                return False
            continue
        for block in content:
            if not (isinstance(block, dict) and _is_of_assistant(block)):
                return False
    return other == "user"


def _are_of_user(blocks: list[Any]) -> bool:
    """Return whether blocks are results and texts, in this order."""
    has_text = False
    for block in blocks:
        if not isinstance(block, dict):
            return False
        if block.get("type") == "tool_result":
            if has_text or not _is_result(block):
                return False
        elif _is_text(block):
            has_text = True
        else:
            return False
    return True


def _is_of_assistant(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    if kind == "tool_use":
        return (
            block.keys() <= _CALL
            and _is_filled(block.get("id"))
            and _is_filled(block.get("name"))
            and isinstance(block.get("input"), dict)
            and _has_plain_mark(block)
        )
    if kind == "thinking":
        return (
            block.keys() == _THINKING
            and isinstance(block["thinking"], str)
            and _is_signature(block["signature"])
        )
    return _is_text(block)


def _is_text(block: Mapping[str, Any]) -> bool:
    return (
        block.get("type") == "text"
        and _is_filled(block.get("text"))
        and block.keys() <= _TEXT
        and _has_plain_mark(block)
    )


def _are_texts(blocks: Any) -> bool:
    """Return whether blocks, of which there are some, are nothing but text."""
    if not (isinstance(blocks, list) and 0 < len(blocks) <= MAX_BLOCKS):
        return False
    for block in blocks:
        if not (isinstance(block, dict) and _is_text(block)):
            return False
    return True


def _is_result(block: Mapping[str, Any]) -> bool:
    content = block.get("content", "")
    return (
        (isinstance(content, str) or _are_texts(content))
        and block.keys() <= _RESULT
        and _is_filled(block.get("tool_use_id"))
        and isinstance(block.get("is_error", False), bool)
        and _has_plain_mark(block)
    )


def _has_plain_mark(block: Mapping[str, Any]) -> bool:
    """Return whether a mark of the prompt's cache says something, if there is one."""
    if _MARK not in block:
        return True
    mark = block[_MARK]
    return isinstance(mark, dict) and isinstance(mark.get("type"), str)


def _is_signature(signature: Any) -> bool:
    try:
        return _is_filled(signature) and bool(
            binascii.a2b_base64(signature.encode(), strict_mode=True)
        )
    except ValueError:
        return False


def _are_plain_tools(tools: Any) -> bool:
    """Return whether no tool says anything that would be left out: empty words and nulls are."""
    if tools is None:
        return True
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS:
        return False
    names = set()
    for tool in tools:
        if not (
            isinstance(tool, dict)
            and _is_filled(name := tool.get("name"))
            and len(name) <= MAX_TOOL_NAME
            and isinstance(schema := tool.get("input_schema"), dict)
            and schema
            and _is_filled(tool.get("description", "none"))
            and isinstance(tool.get("strict", True), bool)
            and "type" not in tool
            and _has_plain_mark(tool)
        ):
            return False
        names.add(name)
    return len(names) == len(tools)


def _is_filled(text: Any) -> TypeGuard[str]:
    return isinstance(text, str) and text != ""


def _thinks(messages: Any) -> bool:
    # They alternate, the user's first.
    for message in messages[1::2]:
        content = message["content"]
        if not isinstance(content, str):
            for block in content:
                if block["type"] == "thinking":
                    return True
    return False
