"""Conversations of chat completions, for providers of another dialect. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.json import Decoder

from services.common.messages.plain_message import PlainMessage, PlainRequest, PlainTool

_MAX_TOKENS = "max_completion_tokens"

_MESSAGES = Decoder(list[PlainMessage])


def plain_request(
    messages: bytes,
    tools: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any] | None,
) -> PlainRequest:
    """Return the plain form of a chat.

    Args:
        messages: the JSON of messages for which `verbatim.verbatim_of` returns a conversation.
        tools: its tools.
        settings: the `settings` of its `VerbatimRequest`.
    """
    if settings is not None:
        settings = dict(settings)
        if settings.get("n") == 1:
            del settings["n"]  # the default
        if _MAX_TOKENS in settings:
            settings["max_tokens"] = settings.pop(_MAX_TOKENS)
    plain_tools = [_tool(tool["function"]) for tool in tools]
    return PlainRequest(_MESSAGES.decode(messages), plain_tools, settings)


def _tool(function: Mapping[str, Any]) -> PlainTool:
    return PlainTool(
        function["name"],
        function.get("description", ""),
        function["parameters"],
        function.get("strict"),
        False,
    )
