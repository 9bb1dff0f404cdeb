"""Plain conversations of messages, for providers of another dialect. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from msgspec.structs import replace

from facade.dialects.anthropic.messages import assistant_message, starts_with_billing
from facade.dialects.anthropic.settings import custom_tool
from gateway.conversation.v1.conversation_pb2 import Message
from services.common.messages.plain_message import (
    PlainCall,
    PlainFunction,
    PlainMessage,
    PlainRequest,
    PlainText,
    PlainTool,
    plain_content,
)

_MARK = "cache_control"
_TOOL = frozenset({"name", "description", "input_schema", "strict", _MARK})


def plain_request(
    conversation: Mapping[str, Any], settings: Mapping[str, Any] | None
) -> PlainRequest:
    """Return the plain form of a conversation.

    Thinking is left out: it has signatures of the caller's provider, and providers of other
    dialects get only thinking that the gateway has signed. A message with text after a call is
    canonical, and so is a tool with fields of this dialect.

    Args:
        conversation: the conversation of a body for which `verbatim.verbatim_of` returns one.
        settings: the `settings` of its `VerbatimRequest`.
    """
    messages: list[PlainMessage | Message] = []
    if "system" in conversation:
        _add_system(conversation, messages)
    for message in conversation["messages"]:
        if not _add(message["role"], message["content"], messages):
            messages.append(assistant_message(message["content"]))
    if settings is not None and "tool_choice" in settings:
        settings = {**settings, "tool_choice": "auto"}
    tools = []
    for index, tool in enumerate(conversation.get("tools") or ()):
        is_plain = tool.keys() <= _TOOL
        tools.append(_tool(tool) if is_plain else custom_tool(tool, f"tools[{index}]"))
    return PlainRequest(messages, tools, settings)


def beginning(conversation: Mapping[str, Any]) -> Sequence[PlainMessage]:
    """Return the texts of a conversation up to the first message; see `LazyRequest.beginning`."""
    messages: list[PlainMessage] = []
    _add_system(conversation, messages)
    _add("user", conversation["messages"][0]["content"], messages)
    return messages


def _add_system(conversation: Mapping[str, Any], messages: list[Any]) -> None:
    if system := conversation.get("system"):
        _add("system", system, messages)
        if starts_with_billing(messages[0].texts[0]):
            messages[0] = replace(messages[0], has_billing_line=True)


def _add(role: Any, content: str | Sequence[Mapping[str, Any]], messages: list[Any]) -> bool:
    """Add a message, after the results in it; return False if it has no plain form."""
    if isinstance(content, str):
        messages.append(PlainMessage(role, content))
        return True
    texts: list[str] = []
    calls: list[PlainCall] = []
    marked, is_long = 0, False
    for block in content:
        kind = block["type"]
        if kind == "tool_result":
            messages.append(_result(block))
            continue
        if kind == "tool_use":
            arguments = orjson.dumps(block["input"]).decode()
            calls.append(PlainCall(block["id"], PlainFunction(block["name"], arguments)))
        elif kind == "text" and not calls:
            texts.append(block["text"])
        elif kind != "thinking":
            return False
        if _MARK in block:
            marked, is_long = len(texts) or 1, _is_long(block)
    if texts or calls:
        text = texts[0] if len(texts) == 1 else plain_content(texts)
        messages.append(
            PlainMessage(role, text, calls, marked=marked, is_marked_long=is_long)
            if marked
            else PlainMessage(role, text, calls)
        )
    return True


def _result(block: Mapping[str, Any]) -> PlainMessage:
    content = block.get("content", "")
    marked, is_long = 0, False
    if isinstance(content, str):
        text: str | list[PlainText] = content
    else:
        text = content[0]["text"] if len(content) == 1 else plain_content(_texts_of(content))
        for number, part in enumerate(content, 1):
            if _MARK in part:
                marked, is_long = number, _is_long(part)
    if _MARK in block:
        marked, is_long = 1 if isinstance(content, str) else len(content) or 1, _is_long(block)
    is_error = block.get("is_error", False)
    return PlainMessage("tool", text, None, block["tool_use_id"], is_error, marked, is_long)


def _texts_of(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    return [part["text"] for part in parts]


def _is_long(holder: Mapping[str, Any]) -> bool:
    """Return whether a part is marked for an hour."""
    mark = holder[_MARK]
    return isinstance(mark, dict) and mark.get("ttl") == "1h"


def _tool(tool: Mapping[str, Any]) -> PlainTool:
    return PlainTool(
        tool["name"],
        tool.get("description", ""),
        tool["input_schema"],
        tool.get("strict"),
        _MARK in tool,
    )
