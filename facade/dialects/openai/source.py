"""Decides which conversations go to a provider of this dialect as their caller wrote them. Pure.

Those in which the way there and back, by the canonical model, would change nothing that
counts: texts, calls of functions and their results, and functions as tools, in the usual
order. Whatever is refused, renamed, left out or moved on that way is not among them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from facade.dialects.extensions import EXTENSION_FIELDS
from facade.dialects.openai.tools import is_name
from facade.dialects.openai.types import ChatRequest, Message, Tool

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


def source_of(wire: ChatRequest) -> tuple[Mapping[str, object], bool] | None:
    """Return the fields of a conversation, and whether only OpenAI itself takes them so.

    None where it has to be translated.
    """
    messages = _messages(wire.messages)
    if messages is None:
        return None
    tools = wire.tools or ()
    if not all(map(_is_plain_tool, tools)):
        return None
    if len({tool["function"]["name"] for tool in tools}) < len(tools):
        return None
    fields: dict[str, object] = {"messages": messages}
    if tools:
        fields["tools"] = tools
    return fields, any(isinstance(one["content"], list) for one in messages)


def _messages(given: Sequence[Message]) -> list[Mapping[str, Any]] | None:
    if not given or given[-1]["role"] == "assistant":
        return None  # one that is gone on with
    messages: list[Mapping[str, Any]] = []
    follows_calls = False
    for message in given:
        role = message["role"]
        if role == "assistant":
            plain = _of_assistant(message)
            follows_calls = plain is not None and "tool_calls" in plain
        elif role == "tool":
            plain = _result(message) if follows_calls else None
        elif role == "developer":
            plain = None  # a role of OpenAI's own
        else:
            plain = _spoken(message)
            follows_calls = False
        if plain is None:
            return None
        messages.append(plain)
    return messages


def _spoken(message: Message) -> Mapping[str, Any] | None:
    content: Any = message.get("content")
    if message.keys() != _SPOKEN or not content:
        return None
    if isinstance(content, str):
        return message
    texts = _texts(content)
    if texts is None:
        return None
    return {**message, "content": texts[0]} if len(texts) == 1 else message


def _result(message: Message) -> Mapping[str, Any] | None:
    if message.keys() != _RESULT or message["tool_call_id"] is None:
        return None
    content = message["content"]
    if isinstance(content, str):
        return message
    texts = _texts(content or ())
    return {**message, "content": texts[0]} if texts is not None and len(texts) == 1 else None


def _of_assistant(message: Message) -> Mapping[str, Any] | None:
    if message.keys() - _ASSISTANTS and any(
        value is not None for name, value in message.items() if name not in _ASSISTANTS
    ):
        return None
    content, calls = message.get("content"), message.get("tool_calls")
    if isinstance(content, list):
        texts = _texts(content)
        if texts is None:
            return None
        content = "".join(texts)
    plain: dict[str, Any] = {"role": "assistant", "content": content or None}
    if calls:
        for call in calls:
            if call.keys() != _CALL or call["type"] != "function":
                return None
            function: Any = call["function"]
            if function is None or function.keys() != _CALLED or not function["arguments"]:
                return None
        plain["tool_calls"] = calls
    elif not content:
        return None
    return plain


def _texts(parts: Sequence[Any]) -> list[str] | None:
    """Return the texts of parts that are nothing but text, none empty, else None."""
    texts: list[str] = []
    for part in parts:
        if part.keys() != _TEXT or part["type"] != "text" or not part["text"]:
            return None
        texts.append(part["text"])
    return texts


def _is_plain_tool(tool: Tool) -> bool:
    function: Any = tool.get("function")
    return (
        tool.keys() == _TOOL
        and tool["type"] == "function"
        and function is not None
        and function.keys() <= _FUNCTION
        and bool(function.get("parameters"))
        and bool(function.get("description", True))
        and function.get("strict", True) is not None
        and is_name(function["name"])
    )
