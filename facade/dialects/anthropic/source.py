"""Decides which conversations go to a provider of this dialect as their caller wrote them. Pure.

Those in which the way there and back, by the canonical model, would change nothing that
counts: texts, calls of tools and their results, signed thinking, and tools of unique names,
in turns. Whatever is refused, left out, merged or moved on that way is not among them.
"""

import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from facade.dialects.anthropic.messages import starts_with_billing
from facade.dialects.anthropic.types import CountTokensBody, Message, Tool
from facade.dialects.extensions import EXTENSION_FIELDS

_MESSAGE = frozenset({"role", "content"})
# A mark of the prompt's cache has to say something, where there is one.
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


def source_of(body: CountTokensBody) -> tuple[Mapping[str, object], bool] | None:
    """Return the fields of a conversation, and whether only Anthropic itself takes them so.

    None where it has to be translated.
    """
    tools = body.tools or ()
    system = body.system or ""
    if not (
        (isinstance(system, str) or all(map(_is_text, system)))
        and all(map(_is_plain_tool, tools))
        and len({tool.get("name") for tool in tools}) == len(tools)
        and _are_plain(body.messages)
    ):
        return None
    fields: dict[str, object] = {"messages": body.messages}
    if system:
        fields["system"] = system
    if tools:
        fields["tools"] = tools
    first = system if isinstance(system, str) else system[0]["text"]
    return fields, starts_with_billing(first) or _thinks(body.messages)


def _are_plain(messages: Sequence[Message]) -> bool:
    """Return whether each message is plain, and user and assistant alternate, the user last."""
    expected, other = "user", "assistant"
    for message in messages:
        content: Any = message["content"]
        if message["role"] != expected or not content or message.keys() != _MESSAGE:
            return False
        expected, other = other, expected
        if isinstance(content, str):
            continue
        if expected == "assistant":
            if not _are_of_user(content):
                return False
            continue
        for block in content:
            if not _is_of_assistant(block):
                return False
    return other == "user"


def _are_of_user(blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether blocks are results and texts, in this order."""
    has_text = False
    for block in blocks:
        if block["type"] == "tool_result":
            if has_text or not _is_result(block):
                return False
        elif _is_text(block):
            has_text = True
        else:
            return False
    return True


def _is_of_assistant(block: Mapping[str, Any]) -> bool:
    kind = block["type"]
    if kind == "tool_use":
        return block.keys() <= _CALL and bool(block.get(_MARK, True))
    if kind == "thinking":
        return block.keys() == _THINKING and _is_signature(block["signature"])
    return _is_text(block)


def _is_text(block: Mapping[str, Any]) -> bool:
    return bool(
        block["type"] == "text"
        and block["text"]
        and block.keys() <= _TEXT
        and block.get(_MARK, True)
    )


def _is_result(block: Mapping[str, Any]) -> bool:
    content = block.get("content", "")
    if not isinstance(content, str):
        if not content:
            return False
        for part in content:
            if not _is_text(part):
                return False
    return bool(
        block.keys() <= _RESULT
        and block.get("is_error", False) is not None
        and block.get(_MARK, True)
    )


def _is_signature(signature: str | None) -> bool:
    try:
        return bool(signature) and bool(
            binascii.a2b_base64((signature or "").encode(), strict_mode=True)
        )
    except ValueError:
        return False


def _is_plain_tool(tool: Tool) -> bool:
    """Return whether a tool says nothing that would be left out: empty words and nulls are."""
    return bool(
        tool.get("name")
        and tool.get("description", True)
        and tool.get("strict", True) is not None
        and "type" not in tool
        and tool.get(_MARK, True)
        and tool.get("input_schema")
    )


def _thinks(messages: Sequence[Message]) -> bool:
    # They alternate, the user's first.
    for message in messages[1::2]:
        content: Any = message["content"]
        if not isinstance(content, str):
            for block in content:
                if block["type"] == "thinking":
                    return True
    return False
