"""Decides which conversations go to a provider of this dialect as their caller wrote them. Pure.

Those in which the way there and back, by the canonical model, would change nothing that counts:
texts, calls of tools and their outputs, and thoughts that such a provider encrypted. Whatever is
refused, left out, fetched or adapted on that way is not among them.

A conversation is looked at before it has been validated: one that goes as it is keeps to the wire
types, so it needs no other validation.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

from pydantic import SkipValidation

from facade.dialects.extensions import MAX_BLOCKS, MAX_MESSAGES, MAX_TOOLS
from facade.dialects.openai.tools import is_name
from facade.dialects.responses.item_types import Input
from facade.dialects.responses.tool_types import Tool
from facade.dialects.responses.types import ResponseRequest

_SPOKEN = frozenset({"type", "role", "content", "id", "status", "phase"})
_INPUT_TEXT = frozenset({"type", "text"})
_OUTPUT_TEXT = _INPUT_TEXT | {"annotations", "logprobs"}
_CALL = frozenset({"type", "id", "status", "call_id", "name", "arguments", "input"})
_OUTPUT = frozenset({"type", "id", "status", "call_id", "output"})
_REASONING = frozenset({"type", "id", "status", "summary", "content", "encrypted_content"})
_SPEAKERS = frozenset({"user", "assistant", "system", "developer"})
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
# Fields that say that some of a conversation is kept elsewhere.
_ELSEWHERE = ("previous_response_id", "conversation", "prompt")
_CONVERSATION = frozenset({"input", "instructions", "tools"})
_PLAIN = _SETTINGS | _CONVERSATION | {"model", "stream", "store", "background"}


class SourcedResponseRequest(ResponseRequest):
    """A body whose conversation goes as its caller wrote it, which says that it is valid."""

    input: SkipValidation[Input | None] = None
    tools: SkipValidation[list[Tool] | None] = None


def plain_settings(wire: ResponseRequest) -> dict[str, object] | None:
    """Return the fields beside a conversation, if they may go on as they are.

    None where some are checked, renamed or left out.
    """
    given = wire.model_fields_set
    if wire.model_extra or not given <= _PLAIN:
        return None
    held = wire.__dict__
    return {name: value for name in given & _SETTINGS if (value := held[name]) is not None}


def source_of(body: Mapping[str, Any]) -> Mapping[str, object] | None:
    """Return the fields of a conversation, None where it has to be validated and translated.

    Args:
        body: JSON that has not been validated.
    """
    for name in _ELSEWHERE:
        if body.get(name) is not None:
            return None
    given, tools = body.get("input"), body.get("tools")
    if not _is_plain_input(given):
        return None
    fields: dict[str, object] = {"input": given}
    if instructions := body.get("instructions"):
        fields["instructions"] = instructions
    if tools:
        if not _are_plain_tools(tools):
            return None
        fields["tools"] = tools
    elif tools not in (None, []):
        return None
    return fields


def _is_plain_input(given: Any) -> bool:
    if isinstance(given, str):
        return given != ""
    if not isinstance(given, list) or not 0 < len(given) <= MAX_MESSAGES:
        return False
    role = None
    for item in given:
        if not (isinstance(item, dict) and _is_plain_item(item)):
            return False
        role = item.get("role")
    return bool(role != "assistant")  # one that is gone on with


def _is_plain_item(item: Mapping[str, Any]) -> bool:
    match item.get("type"):
        case None | "message":
            role = item.get("role")
            return (
                isinstance(role, str)
                and role in _SPEAKERS
                and item.keys() <= _SPOKEN
                and _is_text(item.get("content"), role == "assistant")
            )
        case "function_call":
            return item.keys() <= _CALL and _is_call(item) and _is_filled(item.get("arguments"))
        case "custom_tool_call":
            return item.keys() <= _CALL and _is_call(item) and isinstance(item.get("input"), str)
        case "function_call_output" | "custom_tool_call_output":
            output = item.get("output")
            is_known = item.keys() <= _OUTPUT and _is_filled(item.get("call_id"))
            return is_known and (output == "" or _is_text(output))
        case "reasoning":
            proof = item.get("encrypted_content")
            return (
                item.keys() <= _REASONING
                and isinstance(proof, str)
                and proof.startswith(_ENCRYPTED)
                and _are_thoughts(item.get("summary"))
                and _are_thoughts(item.get("content"))
            )
    return False


def _is_text(content: Any, is_assistant: bool = False) -> bool:
    """Return whether content is text alone, and none of it empty."""
    if isinstance(content, str):
        return content != ""
    if not isinstance(content, list) or not 0 < len(content) <= MAX_BLOCKS:
        return False
    kind, known = ("output_text", _OUTPUT_TEXT) if is_assistant else ("input_text", _INPUT_TEXT)
    for part in content:
        if not (
            isinstance(part, dict)
            and part.get("type") == kind
            and part.keys() <= known
            and _is_filled(part.get("text"))
        ):
            return False
    return True


def _is_call(item: Mapping[str, Any]) -> bool:
    return _is_filled(item.get("call_id")) and _is_filled(item.get("name"))


def _are_thoughts(texts: Any) -> bool:
    if texts is None:
        return True
    return isinstance(texts, list) and all(
        [
            isinstance(one, dict)
            and _is_filled(one.get("type"))
            and isinstance(one.get("text", ""), str)
            for one in texts
        ]
    )


def _are_plain_tools(tools: Any) -> bool:
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS:
        return False
    names = []
    for tool in tools:
        if not (isinstance(tool, dict) and _is_plain_tool(tool)):
            return False
        if "name" in tool:
            names.append(tool["name"])
    return len(set(names)) == len(names)


def _is_plain_tool(tool: Mapping[str, Any]) -> bool:
    kind, name = tool.get("type"), tool.get("name")
    if kind == "function" or kind == "custom":
        if not (isinstance(name, str) and is_name(name)):
            return False
        return kind == "custom" or (
            tool.keys() <= _FUNCTION
            and isinstance(tool.get("description", ""), str | None)
            and isinstance(tool.get("parameters"), dict | None)
            and isinstance(tool.get("strict"), bool | None)
        )
    # The gateway may search in place of the provider.
    return _is_filled(kind) and not kind.startswith("web_search") and "name" not in tool


def _is_filled(text: Any) -> TypeGuard[str]:
    return isinstance(text, str) and text != ""
