"""Output items of OpenAI's responses as canonical blocks. Pure.

A reasoning item is thinking, whose signature is the encrypted content; calls of functions and of
custom tools are tool calls; each text and refusal of a message is a block. Any other item is an
opaque block.
"""

from collections.abc import Iterator
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_RESPONSES,
    Block,
    FinishReason,
    Opaque,
)
from services.inference.providers.bounds import dump
from services.inference.providers.request_fields import Json

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
# Between the texts of a reasoning item.
BREAK = "\n\n"
# Fields with a canonical name, by the type of the item or part.
_OF_MESSAGES = frozenset({"id", "type", "status", "role", "content"})
_OF_CALLS = frozenset({"type", "status", "call_id", "name", "arguments", "input"})
_OF_PARTS = frozenset({"type", "text", "refusal", "logprobs"})
_REASONS = {
    "max_output_tokens": conversation_pb2.FINISH_REASON_MAX_TOKENS,
    "content_filter": conversation_pb2.FINISH_REASON_REFUSAL,
}


def opaque(fields: Json) -> Opaque:
    """Return JSON of the dialect.

    Raises:
        ValueError: it is nested too deeply.
    """
    return Opaque(dialect=DIALECT_RESPONSES, json=dump(fields))


def fields_of_part(part: Json) -> Json:
    """Return the fields of a text or refusal without a canonical name that say anything."""
    return {
        name: value
        for name, value in part.items()
        if name not in _OF_PARTS and value not in (None, [])
    }


def fields_of_call(item: Json) -> Json:
    """Return the fields of a call without a canonical name; its status where it is cut."""
    fields = {
        name: value for name, value in item.items() if name not in _OF_CALLS and value is not None
    }
    if item.get("status") == "incomplete":
        fields["status"] = "incomplete"
    return fields


def fields_of_message(item: Json) -> Json:
    """Return the fields of a message without a canonical name."""
    return {
        name: value
        for name, value in item.items()
        if name not in _OF_MESSAGES and value is not None
    }


def fields_of_reasoning(item: Json) -> Json:
    """Return a reasoning item as it has to be sent back."""
    return {name: value for name, value in item.items() if name != "type" and value is not None}


def texts_of_reasoning(item: Json) -> Iterator[str]:
    """Return the texts of a reasoning item."""
    for part in (*(item.get("summary") or ()), *(item.get("content") or ())):
        yield text_of(part, "text")


def text_of(fields: Json, name: str) -> str:
    """Return a text, "" where it is not there.

    Raises:
        TypeError: it is something else.
    """
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def start_of_part(part: Json) -> Block:
    """Return the block of a content part, with none of its text yet."""
    match part.get("type"):
        case "output_text":
            return Block(text="")
        case "refusal":
            return Block(refusal="")
    return Block(opaque=opaque(part))


def start_of_call(item: Json) -> Block:
    """Return the block of a call, with none of its arguments yet.

    Raises:
        ValueError: it has no id or no name.
    """
    block = Block()
    call = block.tool_use
    call.id, call.name = text_of(item, "call_id"), text_of(item, "name")
    if not (call.id and call.name):
        raise ValueError("a call without an id or a name")
    call.freeform = item["type"] == "custom_tool_call"
    if fields := fields_of_call(item):
        block.extra.CopyFrom(opaque(fields))
    return block


def finish_of(response: Json, kinds: set[str]) -> tuple[FinishReason.ValueType, Json]:
    """Return why an answer ended, and the fields of its end without a canonical name.

    Args:
        response: the response object, completed or incomplete.
        kinds: kinds of the blocks of the answer.
    """
    if response.get("status") == "incomplete":
        details: Any = response.get("incomplete_details") or {}
        reason = _REASONS.get(details.get("reason"), conversation_pb2.FINISH_REASON_END_TURN)
        return reason, {"incomplete_details": details}
    if "tool_use" in kinds:
        return conversation_pb2.FINISH_REASON_TOOL_USE, {}
    if "refusal" in kinds:
        return conversation_pb2.FINISH_REASON_REFUSAL, {}
    return conversation_pb2.FINISH_REASON_END_TURN, {}
