"""Plain conversations of responses, for providers of another dialect. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from services.common.messages.plain_message import (
    PlainCall,
    PlainFunction,
    PlainMessage,
    PlainRequest,
    PlainText,
    PlainTool,
    plain_content,
)

_MAX_TOKENS = "max_output_tokens"
# Fields of an answer's items, which are of no use to another provider when they are sent back.
_OF_ANSWERS = frozenset({"id", "status"})
_MESSAGE = _OF_ANSWERS | {"type", "role", "content"}
_TEXT = frozenset({"type", "text"})
_CALL = _OF_ANSWERS | {"type", "call_id", "name", "arguments"}
_OUTPUT = _OF_ANSWERS | {"type", "call_id", "output"}
_PROMPTS = frozenset({"system", "developer"})


def plain_request(
    conversation: Mapping[str, Any], instructions: str | None, settings: Mapping[str, Any] | None
) -> PlainRequest | None:
    """Return the plain form of a conversation, if it has one.

    Reasoning, calls of custom tools, outputs that follow no call, and texts of the assistant after
    a call have no plain form.

    Args:
        conversation: the conversation of a request for which `verbatim.verbatim_of` returns one.
        instructions: the instructions of the request.
        settings: the `settings` of its `VerbatimRequest`.
    """
    messages: list[PlainMessage] = []
    if instructions:
        messages.append(PlainMessage("system", instructions))
    sent_input = conversation["input"]
    if isinstance(sent_input, str):
        messages.append(PlainMessage("user", sent_input))
    elif not all(_add(item, messages) for item in sent_input):
        return None
    if messages[-1].role == "assistant" or all(one.role in _PROMPTS for one in messages):
        return None
    tools = conversation.get("tools") or ()
    if not all(map(_is_plain, tools)):
        return None
    if settings is not None and _MAX_TOKENS in settings:
        settings = dict(settings)
        settings["max_tokens"] = settings.pop(_MAX_TOKENS)
    return PlainRequest(messages, [_tool(tool) for tool in tools], settings)


def beginning(conversation: Mapping[str, Any], instructions: str | None) -> Iterator[PlainMessage]:
    """Yield the texts of a conversation up to the first user message.

    See `LazyRequest.beginning`.
    """
    if instructions:
        yield PlainMessage("system", instructions)
    sent_input = conversation["input"]
    if isinstance(sent_input, str):
        yield PlainMessage("user", sent_input)
        return
    for item in sent_input:
        if (item.get("type") or "message") == "message":
            role, content = item["role"], item["content"]
            parts = [{"text": content}] if isinstance(content, str) else content
            texts = [part["text"] for part in parts if part.get("text")]
            yield PlainMessage(role, plain_content(texts))
            if role == "user":
                return


def _add(item: Mapping[str, Any], messages: list[PlainMessage]) -> bool:
    """Add an item to the messages; return False if it has no plain form."""
    named = item.keys()
    kind = item.get("type") or "message"
    last = messages[-1] if messages else None
    if kind == "message":
        role = item["role"]
        content = _content(item["content"])
        if content is None or not named <= _MESSAGE:
            return False
        if role == "assistant" and last is not None and last.calls:
            return False
        messages.append(PlainMessage(role, content))
        return True
    if kind == "function_call":
        if not named <= _CALL:
            return False
        call = PlainCall(item["call_id"], PlainFunction(item["name"], item["arguments"]))
        if last is not None and last.role == "assistant":
            messages[-1] = replace(last, calls=[*(last.calls or ()), call])
        else:
            messages.append(PlainMessage("assistant", None, [call]))
        return True
    if kind != "function_call_output" or not named <= _OUTPUT:
        return False
    content = _content(item["output"])
    if content is None or last is None or not (last.role == "tool" or last.calls):
        return False
    messages.append(PlainMessage("tool", content, call_id=item["call_id"]))
    return True


def _content(content: str | Sequence[Mapping[str, Any]]) -> str | list[PlainText] | None:
    """Return plain content, or None if parts have further fields."""
    if isinstance(content, str):
        return content
    if any(_says_more(part) for part in content):
        return None
    texts = [part["text"] for part in content]
    return None if None in texts else plain_content(texts)


def _says_more(part: Mapping[str, Any]) -> bool:
    return part.keys() != _TEXT and any(
        value not in (None, []) for name, value in part.items() if name not in _TEXT
    )


def _is_plain(tool: Mapping[str, Any]) -> bool:
    return tool["type"] == "function" and bool(tool.get("parameters"))


def _tool(tool: Mapping[str, Any]) -> PlainTool:
    description = tool.get("description") or ""
    return PlainTool(tool["name"], description, tool["parameters"], tool.get("strict"), False)
