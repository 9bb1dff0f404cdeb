"""Custom tools of OpenAI's dialects as functions. Pure.

Custom tools take free text. Each becomes a function with one text argument, `input`. A grammar
cannot be enforced then: it goes into the argument's description, and its field is reported as
dropped.

Source: OpenAI's guide on function calling, "Custom tools".
"""

from collections.abc import Mapping
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import Block, Opaque
from gateway.inference.v1.inference_pb2 import Tool

INPUT = "input"
CUSTOM = "custom"
_READ = frozenset({"type", "name", "description", "format"})
_INPUT = "The input of the tool, as plain text."


def definition_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the definition of a custom tool, or the tool choice of one; empty for others.

    In chat completions it is nested in a field `custom`.
    """
    if fields.get("type") != CUSTOM:
        return {}
    inner = fields.get(CUSTOM, fields)
    return inner if isinstance(inner, dict) else {}


def grammar_of(definition: Mapping[str, Any]) -> str:
    """Return the instruction for the model to match a tool's grammar, or "" for free text."""
    form = definition.get("format")
    if not isinstance(form, dict) or form.get("type") != "grammar":
        return ""
    inner = form.get("grammar", form)
    if not isinstance(inner, dict):
        return ""
    grammar, syntax = inner.get("definition"), inner.get("syntax")
    return f"It must match this grammar ({syntax}):\n{grammar}" if grammar else ""


def function_of(fields: Mapping[str, Any], name: str, opaque: Opaque) -> Tool:
    """Return the function in place of a custom tool.

    Args:
        fields: the tool.
        name: the name of the function.
        opaque: the dialect of the tool; its flags are kept in it, to be reported as dropped.
    """
    definition = definition_of(fields)
    grammar = grammar_of(definition)
    words = f"{_INPUT} {grammar}" if grammar else _INPUT
    schema = {
        "type": "object",
        "properties": {INPUT: {"type": "string", "description": words}},
        "required": [INPUT],
        "additionalProperties": False,
    }
    description = definition.get("description")
    function = Tool(
        name=name,
        description=description if isinstance(description, str) else "",
        input_schema=orjson.dumps(schema),
    )
    flags = {name: value for name, value in definition.items() if name not in _READ}
    if flags:
        kept = flags if definition is fields else {CUSTOM: flags}
        function.extra.dialect, function.extra.json = opaque.dialect, orjson.dumps(kept)
    return function


def wrap_call(block: Block) -> None:
    """Turn an earlier call of a custom tool into a call of the function, in place."""
    use = block.tool_use
    use.input = orjson.dumps({INPUT: use.input}).decode()
    use.freeform = False
