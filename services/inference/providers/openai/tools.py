"""Tools and the choice of tools for chat completions. Pure."""

from collections.abc import Sequence
from functools import partial

import orjson

from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, ToolChoice
from services.common.messages.plain_message import PlainTool
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai.fields import OpenAIFields, parameters_of
from services.inference.providers.schemas import function_schema, lacks_items, may_be_strict

_CHOICES = {
    ToolChoice.MODE_AUTO: "auto",
    ToolChoice.MODE_ANY: "required",
    ToolChoice.MODE_NONE: "none",
}


def tools_of(request: GenerateRequest, fields: OpenAIFields) -> Sequence[Json | orjson.Fragment]:
    """Return the tools of a canonical request.

    Raises:
        GatewayError: unsupported or invalid, with the path of the tool.
    """
    return [_tool(tool, path, fields) for path, tool in fields.accepted_tools(request)]


def plain_tools(
    tools: Sequence[PlainTool | Tool], json: bytes, fields: OpenAIFields
) -> Sequence[Json | orjson.Fragment]:
    """Return functions of another dialect.

    Args:
        tools: the functions.
        json: the functions as the caller wrote them.
        fields: decides what the server is sent.
    """
    plain = partial(_plain_tool, fields=fields, may_lack_items=lacks_items(json))
    canonical = partial(_tool, path="tools[]", fields=fields)
    return [plain(tool) if isinstance(tool, PlainTool) else canonical(tool) for tool in tools]


def _plain_tool(tool: PlainTool, fields: OpenAIFields, may_lack_items: bool) -> Json:
    if tool.is_marked:
        fields.drop("tools[].cache_control")
    function: Json = {"name": fields.tool_name(tool.name)}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = function_schema(tool.parameters, lacks_items=may_lack_items)
    if tool.strict is not None:
        function["strict"] = _strictness(tool.strict, function["parameters"], fields)
    return {"type": "function", "function": function}


def _tool(tool: Tool, path: str, fields: OpenAIFields) -> Json | orjson.Fragment:
    if tool.opaque:
        return fields.own_tool(tool.extra, path)
    if tool.cache_control:
        fields.drop_mark("tools[].cache_control", tool.extra)
    native = fields.native_fields(tool.extra, f"{path}.extra", "tools[].extra")
    native = fields.accepted_fields(native, "tools[].", "tools[].extra")
    inner = native.get("function")
    function: Json = {**inner} if isinstance(inner, dict) else {}
    function["name"] = fields.tool_name(tool.name)
    if tool.description:
        function["description"] = tool.description
    # Omitted parameters mean no arguments to OpenAI, and an error to some other servers.
    function["parameters"] = parameters_of(tool.input_schema, f"{path}.input_schema", fields)
    if tool.HasField("strict"):
        function["strict"] = _strictness(tool.strict, function["parameters"], fields)
    return {**native, "type": "function", "function": function}


def _strictness(strict: bool, parameters: Json | orjson.Fragment, fields: OpenAIFields) -> bool:
    """Return whether a function is strict; one of another dialect is only if OpenAI accepts it."""
    if not strict or fields.is_native or isinstance(parameters, orjson.Fragment):
        return strict
    if may_be_strict(parameters):
        return strict
    fields.drop("tools[].strict")
    return False


def add_tool_choice(body: Json, choice: ToolChoice, fields: OpenAIFields) -> None:
    """Add the choice of tools to a body."""
    if choice.mode in _CHOICES:
        body["tool_choice"] = _CHOICES[choice.mode]
    elif choice.mode == ToolChoice.MODE_TOOL:
        body["tool_choice"] = _named_choice(choice, fields)
    elif choice.HasField("extra"):
        body["tool_choice"] = fields.own_value(choice.extra, "tool_choice", "this tool choice")
    if choice.HasField("disable_parallel_tool_use"):
        body["parallel_tool_calls"] = not choice.disable_parallel_tool_use


def _named_choice(choice: ToolChoice, fields: OpenAIFields) -> Json:
    native = fields.native_fields(choice.extra, "tool_choice.extra")
    inner = native.get("function")
    function: Json = {**inner} if isinstance(inner, dict) else {}
    function["name"] = fields.tool_name(choice.name)
    return {**native, "type": "function", "function": function}
