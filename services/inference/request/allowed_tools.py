"""The tool choice `allowed_tools`, for providers of other dialects. Pure.

Providers of other dialects are sent only the allowed tools. A provider of the choice's own dialect
is sent the choice and all tools, so that its prompt cache, which begins with them, stays valid.

Source: OpenAI's guide on function calling, "Allowed tools".
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_GEMINI,
    DIALECT_OPENAI,
    DIALECT_RESPONSES,
    Dialect,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, ToolChoice
from services.inference.request.request_changes import copied

_TYPE = "allowed_tools"
_CUSTOM = "custom"
_NAMESPACE = "namespace"
_MODES = {"auto": ToolChoice.MODE_AUTO, "required": ToolChoice.MODE_ANY}
_DIALECTS = (DIALECT_OPENAI, DIALECT_RESPONSES)
# Modes of Google's allowed functions; all others leave the choice to the model.
_GOOGLE_MODES = {"any": ToolChoice.MODE_ANY}


def limits_tools(request: GenerateRequest, dialect: Dialect.ValueType) -> bool:
    """Return whether `allowed_tools` has to be translated for a provider of a dialect."""
    choice = request.tool_choice
    return (
        choice.mode == ToolChoice.MODE_UNSPECIFIED
        and choice.extra.dialect != dialect
        and (
            (choice.extra.dialect in _DIALECTS and b'"allowed_tools"' in choice.extra.json)
            or (choice.extra.dialect == DIALECT_GEMINI and b'"allowedFun' in choice.extra.json)
        )
    )


def with_allowed_tools(request: GenerateRequest, dialect: Dialect.ValueType) -> GenerateRequest:
    """Return a request with only the allowed tools, if the choice has to be translated.

    Args:
        request: the request; not modified.
        dialect: the dialect of the provider.
    """
    if not limits_tools(request, dialect):
        return request
    choice = orjson.loads(request.tool_choice.extra.json)
    match choice:
        case {"functionCallingConfig": {"allowedFunctionNames": list(functions)} as config}:
            google_mode = _GOOGLE_MODES.get(str(config.get("mode")).lower(), ToolChoice.MODE_AUTO)
            allowed_names = {name for name in functions if isinstance(name, str)}
            named = [tool for tool in request.tools if tool.name in allowed_names]
            return _with_tools(request, named, google_mode)
    # In chat completions the choice is nested in a field of its own.
    inner = choice.get(_TYPE, choice) if isinstance(choice, dict) else None
    if not isinstance(inner, dict) or choice.get("type") != _TYPE:
        return request
    mode, tools = _MODES.get(str(inner.get("mode"))), inner.get("tools")
    if mode is None or not isinstance(tools, list):
        return request
    allowed = [tool for tool in tools if isinstance(tool, dict)]
    names = _names(allowed)
    types = {_type_of(tool) for tool in allowed if tool.get("type") != _CUSTOM}
    kept = [tool for tool in request.tools if _is_allowed(tool, names, types)]
    return _with_tools(request, kept, mode)


def _with_tools(
    request: GenerateRequest, kept: Sequence[Tool], mode: ToolChoice.Mode.ValueType
) -> GenerateRequest:
    """Return a request with some of its tools; none of them is called if there are none."""
    changed = copied(request)
    changed.tool_choice.ClearField("extra")
    if kept:
        changed.tool_choice.mode = mode
        del changed.tools[:]
        changed.tools.extend(kept)
    else:
        # A conversation with tool calls needs the definitions of the tools.
        changed.tool_choice.mode = ToolChoice.MODE_NONE
    return changed


def _names(allowed: Sequence[Mapping[str, Any]]) -> Set[str]:
    """Return the names of the functions and custom tools in a list of allowed tools."""
    names = set()
    for tool in allowed:
        kind = tool.get("type")
        if kind in ("function", _CUSTOM):
            named = tool.get(kind, tool)
            names.add(str(named.get("name")) if isinstance(named, dict) else "")
    return names


def _type_of(tool: Mapping[str, Any]) -> tuple[str, object]:
    """Return the type of a tool that is no function, and the name of a namespace."""
    kind = str(tool.get("type"))
    return kind, tool.get("name") if kind == _NAMESPACE else None


def _is_allowed(tool: Tool, names: Set[str], types: Set[tuple[str, object]]) -> bool:
    if tool.name in names:
        return True
    return tool.opaque and _type_of(orjson.loads(tool.extra.json)) in types
