"""Plain conversations of chat completions, for providers of another dialect. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from facade.dialects.openai.types import Message
from services.common.plain_request import PlainCall, PlainMessage, PlainRequest, PlainTool

_MAX_TOKENS = "max_completion_tokens"


def plain_request(
    conversation: Mapping[str, Any], settings: Mapping[str, Any] | None
) -> PlainRequest:
    """Return the plain form of a chat.

    Args:
        conversation: the conversation of a chat for which `verbatim.verbatim_of` returns one.
        settings: the result of `dialects.verbatim.plain_settings`.
    """
    if settings is not None:
        settings = dict(settings)
        if settings.get("n") == 1:
            del settings["n"]  # the default
        if _MAX_TOKENS in settings:
            settings["max_tokens"] = settings.pop(_MAX_TOKENS)
    return PlainRequest(
        [_message(message) for message in conversation["messages"]],
        [_tool(tool["function"]) for tool in conversation.get("tools") or ()],
        settings,
    )


def beginning(conversation: Mapping[str, Any]) -> Iterator[PlainMessage]:
    """Yield the messages of a chat up to the first user message; see `LazyRequest.beginning`."""
    for message in conversation["messages"]:
        yield _message(message)
        if message["role"] == "user":
            return


def _message(message: Message) -> PlainMessage:
    role: Any = message["role"]
    content: Any = message.get("content")
    if not content:
        texts = []
    elif isinstance(content, str):
        texts = [content]
    else:
        texts = [part["text"] for part in content]
    if role == "tool":
        return PlainMessage(role, texts, call_id=message["tool_call_id"] or "")
    if calls := message.get("tool_calls"):
        return PlainMessage(role, texts, [_call(call) for call in calls])
    return PlainMessage(role, texts)


def _call(call: Any) -> PlainCall:
    function = call["function"]
    return PlainCall(call["id"], function["name"], function["arguments"])


def _tool(function: Any) -> PlainTool:
    return PlainTool(
        function["name"],
        function.get("description", ""),
        function["parameters"],
        function.get("strict"),
        False,
    )
