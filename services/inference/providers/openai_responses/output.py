"""Output items of OpenAI's responses as canonical blocks. Pure.

A reasoning item becomes thinking, with its encrypted content as the signature. Calls of functions
and custom tools become tool calls. Each text and refusal of a message becomes a block. Any other
item becomes an opaque block.
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
from services.inference.providers.opaque_json import Json

# Block kinds by the type of content part.
KINDS = {"output_text": "text", "refusal": "refusal"}
# Names of the arguments by the type of call.
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
# Separator between the texts of a reasoning item.
BREAK = "\n\n"
# Fields with a canonical counterpart, by the type of the item or part.
_OF_MESSAGES = frozenset({"id", "type", "status", "role", "content"})
_OF_CALLS = frozenset({"type", "status", "call_id", "name", "arguments", "input"})
_OF_PARTS = frozenset({"type", "text", "refusal", "logprobs"})
_REASONS = {
    "max_output_tokens": conversation_pb2.FINISH_REASON_MAX_TOKENS,
    "content_filter": conversation_pb2.FINISH_REASON_REFUSAL,
}


def opaque(fields: Json) -> Opaque:
    """Return JSON as an `Opaque` of the dialect.

    Raises:
        ValueError: the JSON is nested too deeply.
    """
    return Opaque(dialect=DIALECT_RESPONSES, json=dump(fields))


def fields_of_part(part: Json) -> Json:
    """Return the unknown fields of a text or refusal that are not empty."""
    return {
        name: value
        for name, value in part.items()
        if name not in _OF_PARTS and value not in (None, [])
    }


def fields_of_call(item: Json) -> Json:
    """Return the unknown fields of a call, and its status if it is incomplete."""
    fields = {
        name: value for name, value in item.items() if name not in _OF_CALLS and value is not None
    }
    if item.get("status") == "incomplete":
        fields["status"] = "incomplete"
    return fields


def fields_of_message(item: Json) -> Json:
    """Return the unknown fields of a message."""
    return {
        name: value
        for name, value in item.items()
        if name not in _OF_MESSAGES and value is not None
    }


def fields_of_reasoning(item: Json) -> Json:
    """Return the fields of a reasoning item to send back in later requests."""
    return {name: value for name, value in item.items() if name != "type" and value is not None}


def texts_of_reasoning(item: Json) -> Iterator[str]:
    """Yield the texts of a reasoning item."""
    for part in (*(item.get("summary") or ()), *(item.get("content") or ())):
        yield text_of(part, "text")


def text_of(fields: Json, name: str) -> str:
    """Return a string field, "" if it is absent or null.

    Raises:
        TypeError: the value is not a string.
    """
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def start_of_part(part: Json) -> Block:
    """Return the block of a content part, without its text."""
    match part.get("type"):
        case "output_text":
            return Block(text="")
        case "refusal":
            return Block(refusal="")
    return Block(opaque=opaque(part))


def start_of_call(item: Json) -> Block:
    """Return the block of a call, without its arguments.

    Raises:
        ValueError: the call has no id or no name.
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
    """Return why an answer ended, and the unknown fields of its end.

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
