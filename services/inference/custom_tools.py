"""Emulation of custom tools by functions, for providers that only have functions. Pure.

Custom tools take free text. Each becomes a function with one text argument, `input`. A grammar
cannot be enforced then: it goes into the argument's description, and its field is reported as
dropped. Calls of such functions become calls of the custom tools; see `stream.custom_calls`.

Source: OpenAI's guide on function calling, "Custom tools".
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_OPENAI,
    DIALECT_RESPONSES,
    Dialect,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, ToolChoice
from services.inference.request_changes import copied

INPUT = "input"
_CUSTOM = "custom"
_DIALECTS = (DIALECT_OPENAI, DIALECT_RESPONSES)
_INPUT = "The input of the tool, as plain text."


class WithFunctions(NamedTuple):
    """A request whose custom tools have become functions.

    Attributes:
        request: the request; the original one if it has no custom tools.
        names: the names of the custom tools.
        dropped: paths of dropped fields.
    """

    request: GenerateRequest
    names: frozenset[str] = frozenset()
    dropped: Sequence[str] = ()


def with_functions(request: GenerateRequest, dialect: Dialect.ValueType) -> WithFunctions:
    """Replace custom tools by functions, for a provider of another dialect than the request's.

    Args:
        request: the request; not modified.
        dialect: the dialect of the provider.
    """
    if request.dialect == dialect or not any(tool.opaque for tool in request.tools):
        return WithFunctions(request)
    found = {
        index: fields
        for index, tool in enumerate(request.tools)
        if tool.extra.dialect in _DIALECTS
        and tool.extra.dialect != dialect
        and (fields := _custom(tool.opaque, tool.extra.json))
    }
    if not found:
        return WithFunctions(request)
    changed = copied(request)
    dropped = []
    for index, fields in found.items():
        form = fields.get("format")
        grammar = _grammar(form) if isinstance(form, dict) else ""
        if grammar:
            is_chats = request.tools[index].extra.dialect == DIALECT_OPENAI
            inner = f"{_CUSTOM}.format" if is_chats else "format"
            dropped.append(f"tools[{index}].extra.{inner}")
        changed.tools[index].CopyFrom(_function(request.tools[index].name, fields, grammar))
    choice = request.tool_choice
    if choice.mode == ToolChoice.MODE_UNSPECIFIED and (
        named := _custom(choice.HasField("extra"), choice.extra.json)
    ):
        changed.tool_choice.ClearField("extra")
        changed.tool_choice.mode = ToolChoice.MODE_TOOL
        changed.tool_choice.name = str(named.get("name", ""))
    _wrap_calls(changed)
    names = frozenset(request.tools[index].name for index in found)
    return WithFunctions(changed, names, dropped)


def _custom(is_opaque: bool, json: bytes) -> Mapping[str, Any]:
    """Return the definition of a custom tool, or the tool choice of one; empty for others.

    In chat completions it is nested in a field `custom`.
    """
    if not is_opaque or b'"custom"' not in json:
        return {}
    given = orjson.loads(json)
    if not isinstance(given, dict) or given.get("type") != _CUSTOM:
        return {}
    inner = given.get(_CUSTOM, given)
    return inner if isinstance(inner, dict) else {}


def _grammar(form: Mapping[str, Any]) -> str:
    """Return the instruction for the model to match a grammar, or "" for free text."""
    if form.get("type") != "grammar":
        return ""
    inner = form.get("grammar", form)
    if not isinstance(inner, dict):
        return ""
    definition, syntax = inner.get("definition"), inner.get("syntax")
    return f"It must match this grammar ({syntax}):\n{definition}" if definition else ""


def _function(name: str, fields: Mapping[str, Any], grammar: str) -> Tool:
    words = f"{_INPUT} {grammar}" if grammar else _INPUT
    schema = {
        "type": "object",
        "properties": {INPUT: {"type": "string", "description": words}},
        "required": [INPUT],
        "additionalProperties": False,
    }
    description = fields.get("description")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else "",
        input_schema=orjson.dumps(schema),
    )


def _wrap_calls(request: GenerateRequest) -> None:
    """Turn earlier calls of custom tools into calls of the functions."""
    for message in request.messages:
        for block in message.blocks:
            if block.tool_use.freeform:
                block.tool_use.input = orjson.dumps({INPUT: block.tool_use.input}).decode()
                block.tool_use.freeform = False
