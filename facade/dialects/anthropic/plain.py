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
        settings: the result of `dialects.verbatim.plain_settings`.
    """
    messages: list[PlainMessage | Message] = []
    _add_system(conversation, messages)
    for message in conversation["messages"]:
        if not _add(message["role"], message["content"], messages):
            messages.append(assistant_message(message["content"]))
    if settings is not None and "tool_choice" in settings:
        settings = {**settings, "tool_choice": "auto"}
    tools = [
        _tool(tool) if tool.keys() <= _TOOL else custom_tool(tool, f"tools[{index}]")
        for index, tool in enumerate(conversation.get("tools") or ())
    ]
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
    is_marked = False
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
        is_marked = is_marked or _MARK in block
    if texts or calls:
        text = texts[0] if len(texts) == 1 else plain_content(texts)
        messages.append(PlainMessage(role, text, calls, is_marked=is_marked))
    return True


def _result(block: Mapping[str, Any]) -> PlainMessage:
    content = block.get("content", "")
    is_marked = _MARK in block
    if isinstance(content, str):
        text: str | list[PlainText] = content
    elif len(content) == 1:
        text = content[0]["text"]
        is_marked = is_marked or _MARK in content[0]
    else:
        text = plain_content([part["text"] for part in content])
        is_marked = is_marked or any(_MARK in part for part in content)
    return PlainMessage(
        "tool", text, None, block["tool_use_id"], block.get("is_error", False), is_marked
    )


def _tool(tool: Mapping[str, Any]) -> PlainTool:
    return PlainTool(
        tool["name"],
        tool.get("description", ""),
        tool["input_schema"],
        tool.get("strict"),
        _MARK in tool,
    )
