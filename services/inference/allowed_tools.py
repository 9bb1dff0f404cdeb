"""A choice among some of the tools, `allowed_tools`, for providers of other dialects. Pure.

They are offered these tools alone. In its own dialect the choice goes on with all tools, so that
the provider's prompt cache, which begins with them, stays valid.

Source: OpenAI's guide on function calling, "Allowed tools".
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_OPENAI,
    DIALECT_RESPONSES,
    Dialect,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, ToolChoice
from services.inference.request_changes import copied

_TYPE = "allowed_tools"
_CUSTOM = "custom"
_MODES = {"auto": ToolChoice.MODE_AUTO, "required": ToolChoice.MODE_ANY}
_DIALECTS = (DIALECT_OPENAI, DIALECT_RESPONSES)


def limits_tools(request: GenerateRequest, dialect: Dialect.ValueType) -> bool:
    """Return whether a choice among some tools is to be translated for a provider of a dialect."""
    if not request.HasField("tool_choice"):
        return False
    choice = request.tool_choice
    return (
        choice.mode == ToolChoice.MODE_UNSPECIFIED
        and choice.extra.dialect in _DIALECTS
        and choice.extra.dialect != dialect
        and b'"allowed_tools"' in choice.extra.json
    )


def with_allowed_tools(request: GenerateRequest, dialect: Dialect.ValueType) -> GenerateRequest:
    """Return a request as a provider of a dialect may see it, with the allowed tools alone.

    Args:
        request: it is not changed.
        dialect: the provider's.
    """
    if not limits_tools(request, dialect):
        return request
    given = orjson.loads(request.tool_choice.extra.json)
    # In a chat the tools stand in a field.
    inner = given.get(_TYPE, given) if isinstance(given, dict) else None
    if not isinstance(inner, dict) or given.get("type") != _TYPE:
        return request
    mode, tools = _MODES.get(str(inner.get("mode"))), inner.get("tools")
    if mode is None or not isinstance(tools, list):
        return request
    allowed = [tool for tool in tools if isinstance(tool, dict)]
    names = _names(allowed)
    types = {str(tool.get("type")) for tool in allowed} - {_CUSTOM}
    kept = [tool for tool in request.tools if _is_allowed(tool, names, types)]
    changed = copied(request)
    changed.tool_choice.ClearField("extra")
    if kept:
        changed.tool_choice.mode = mode
        del changed.tools[:]
        changed.tools.extend(kept)
    else:
        # A conversation with calls of tools needs their definitions.
        changed.tool_choice.mode = ToolChoice.MODE_NONE
    return changed


def _names(allowed: Sequence[Mapping[str, Any]]) -> Set[str]:
    """Return the names of the functions and custom tools among these."""
    found = set()
    for tool in allowed:
        kind = tool.get("type")
        if kind in ("function", _CUSTOM):
            named = tool.get(kind, tool)
            found.add(str(named.get("name")) if isinstance(named, dict) else "")
    return found


def _is_allowed(tool: Tool, names: Set[str], types: Set[str]) -> bool:
    if tool.name in names:
        return True
    return tool.opaque and str(orjson.loads(tool.extra.json).get("type")) in types
