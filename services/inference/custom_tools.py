"""Custom tools, which take free text, as functions for providers that have functions alone. Pure.

A custom tool becomes a function with one text, `input`. A grammar that the text is to match cannot
be enforced there: the model reads it, and the field is reported as dropped. Calls of such functions
become calls of the custom tools again; see `stream.custom_calls`.

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
    """A request whose custom tools are functions.

    Attributes:
        request: the request, which is itself where it has no custom tools.
        names: of the custom tools.
        dropped: paths of the fields that say nothing to the provider.
    """

    request: GenerateRequest
    names: frozenset[str] = frozenset()
    dropped: Sequence[str] = ()


def with_functions(request: GenerateRequest, dialect: Dialect.ValueType) -> WithFunctions:
    """Return a request as a provider of a dialect may see it, which is not the caller's own.

    Args:
        request: it is not changed.
        dialect: the provider's.
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
    """Return the definition of a custom tool, or the choice of one; empty for others.

    In a chat it stands in a field `custom`.
    """
    if not is_opaque or b'"custom"' not in json:
        return {}
    given = orjson.loads(json)
    if not isinstance(given, dict) or given.get("type") != _CUSTOM:
        return {}
    inner = given.get(_CUSTOM, given)
    return inner if isinstance(inner, dict) else {}


def _grammar(form: Mapping[str, Any]) -> str:
    """Return what says to a model how a text is written, or "" for free text."""
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
    """Write earlier calls of custom tools as those of the functions."""
    for message in request.messages:
        for block in message.blocks:
            if block.tool_use.freeform:
                block.tool_use.input = orjson.dumps({INPUT: block.tool_use.input}).decode()
                block.tool_use.freeform = False
