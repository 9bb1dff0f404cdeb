"""Decides which conversations go to a provider of this dialect as their caller wrote them. Pure.

Those in which the way there and back, by the canonical model, would change nothing that counts:
texts, calls of tools and their outputs, and thoughts that such a provider encrypted. Whatever is
refused, left out, fetched or adapted on that way is not among them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from facade.dialects.openai.tools import is_name
from facade.dialects.responses.types import ResponseRequest

_SPOKEN = frozenset({"type", "role", "content", "id", "status", "phase"})
_INPUT_TEXT = frozenset({"type", "text"})
_OUTPUT_TEXT = _INPUT_TEXT | {"annotations", "logprobs"}
_CALL = frozenset({"type", "id", "status", "call_id", "name", "arguments", "input"})
_OUTPUT = frozenset({"type", "id", "status", "call_id", "output"})
_REASONING = frozenset({"type", "id", "status", "summary", "content", "encrypted_content"})
_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})
# How OpenAI's encrypted thoughts begin (Fernet, version 128).
_ENCRYPTED = "gAAAA"

# Beside the conversation, the fields that mean one thing to every server of the dialect, and that
# are right wherever their types are.
_SETTINGS = frozenset(
    {
        *("max_output_tokens", "temperature", "top_p", "parallel_tool_calls", "metadata"),
        *("prompt_cache_key", "safety_identifier"),
    }
)
_CONVERSATION = frozenset({"input", "instructions", "tools"})
_PLAIN = _SETTINGS | _CONVERSATION | {"model", "stream", "store", "background"}


def plain_settings(wire: ResponseRequest) -> dict[str, object] | None:
    """Return the fields beside a conversation, if they may go on as they are.

    None where some are checked, renamed or left out.
    """
    given = wire.model_fields_set
    if wire.model_extra or not given <= _PLAIN:
        return None
    held = wire.__dict__
    return {name: value for name in given & _SETTINGS if (value := held[name]) is not None}


def source_of(wire: ResponseRequest) -> Mapping[str, object] | None:
    """Return the fields of a conversation, None where it has to be translated."""
    # Attributes of the wire type are looked up slowly.
    held = wire.__dict__
    if held["previous_response_id"] is not None or held["conversation"] is not None:
        return None
    given = held["input"]
    if held["prompt"] is not None or not _is_plain_input(given):
        return None
    fields: dict[str, object] = {"input": given}
    if held["instructions"]:
        fields["instructions"] = held["instructions"]
    if held["tools"]:
        tools = cast("Sequence[Mapping[str, Any]]", held["tools"])
        if not all(map(_is_plain_tool, tools)):
            return None
        names = [tool["name"] for tool in tools if "name" in tool]
        if len(set(names)) < len(names):
            return None
        fields["tools"] = tools
    return fields


def _is_plain_input(given: object) -> bool:
    if not given or isinstance(given, str):
        return bool(given)
    items = cast("Sequence[Mapping[str, Any]]", given)
    # One of the assistant's at the end is gone on with.
    if items[-1].get("role") == "assistant":
        return False
    for item in items:
        if not _is_plain_item(item):
            return False
    return True


def _is_plain_item(item: Mapping[str, Any]) -> bool:
    match item.get("type"):
        case None | "message" if "role" in item:
            is_assistant = item["role"] == "assistant"
            return item.keys() <= _SPOKEN and _is_text(item["content"], is_assistant)
        case "function_call":
            return item.keys() <= _CALL and bool(item["arguments"])
        case "custom_tool_call":
            return item.keys() <= _CALL
        case "function_call_output" | "custom_tool_call_output":
            return item.keys() <= _OUTPUT and (item["output"] == "" or _is_text(item["output"]))
        case "reasoning":
            proof = item.get("encrypted_content") or ""
            return item.keys() <= _REASONING and proof.startswith(_ENCRYPTED)
    return False


def _is_text(content: Any, is_assistant: bool = False) -> bool:
    """Return whether content is text alone, and none of it empty."""
    if not content or isinstance(content, str):
        return bool(content)
    kind, known = ("output_text", _OUTPUT_TEXT) if is_assistant else ("input_text", _INPUT_TEXT)
    return all(
        part["type"] == kind and part.keys() <= known and bool(part.get("text")) for part in content
    )


def _is_plain_tool(tool: Mapping[str, Any]) -> bool:
    kind = tool["type"]
    if kind == "function":
        return tool.keys() <= _FUNCTION and is_name(tool["name"])
    if kind == "custom":
        return is_name(tool["name"])
    # The gateway may search in place of the provider.
    return not kind.startswith("web_search") and "name" not in tool
