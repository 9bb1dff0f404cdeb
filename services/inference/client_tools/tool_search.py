"""OpenAI's tool search, run by the caller, as a function. Pure.

The model calls it with a query; the caller answers with tools, which can be called from then on.

Source: OpenAI's guide "Tool search", and its reference of the items `tool_search_call` and
`tool_search_output`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Block, Opaque
from gateway.inference.v1.inference_pb2 import Tool

NAME = "tool_search"
CALL = "tool_search_call"
OUTPUT = "tool_search_output"
_READ = frozenset({"type", "execution", "description", "parameters"})
_DESCRIPTION = "Search for further tools. The tools that are found can be called afterwards."
_PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What the tools should do."}},
    "required": ["query"],
    "additionalProperties": False,
}


def is_run_by_caller(fields: Mapping[str, Any]) -> bool:
    """Return whether a tool is a tool search that the caller runs; OpenAI runs it by default."""
    return fields.get("type") == NAME and fields.get("execution") == "client"


def function_of(fields: Mapping[str, Any], name: str) -> Tool:
    """Return the function in place of a tool search."""
    description, parameters = fields.get("description"), fields.get("parameters")
    function = Tool(
        name=name,
        description=description if isinstance(description, str) and description else _DESCRIPTION,
        input_schema=orjson.dumps(parameters if isinstance(parameters, dict) else _PARAMETERS),
    )
    if flags := {name: value for name, value in fields.items() if name not in _READ}:
        function.extra.dialect, function.extra.json = DIALECT_RESPONSES, orjson.dumps(flags)
    return function


def is_call(block: Block) -> bool:
    """Return whether a block of an answer is a call of a tool search that the caller runs."""
    opaque = block.opaque
    return opaque.dialect == DIALECT_RESPONSES and b'"tool_search_call"' in opaque.json


def call_block(item: Mapping[str, Any], call_id: str, name: str) -> Block:
    """Return the call of the function `name` in place of an earlier call of the tool search."""
    block, arguments = Block(), item.get("arguments")
    block.tool_use.id, block.tool_use.name = call_id, name
    if not isinstance(arguments, str):
        arguments = orjson.dumps(arguments or {}).decode()
    block.tool_use.input = arguments
    return block


def output_block(call_id: str, names: Sequence[str]) -> Block:
    """Return the result of the function, or a text if OpenAI ran the search (`call_id` is "")."""
    listed = ", ".join(names)
    text = f"Tools that can be called now: {listed}" if listed else "No tools were found."
    if not call_id:
        return Block(text=f"[{text}]")
    block = Block()
    block.tool_result.tool_use_id = call_id
    block.tool_result.blocks.add(text=text)
    return block


def item_of(call_id: str, arguments: str) -> Block:
    """Return the call of a tool search in place of a call of the function in an answer."""
    value: object = arguments
    try:
        value = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        pass  # as the model wrote it
    item = {
        "type": CALL,
        "execution": "client",
        "call_id": call_id,
        "status": "completed",
        "arguments": value,
    }
    return Block(opaque=Opaque(dialect=DIALECT_RESPONSES, json=orjson.dumps(item)))
