"""Tools that a provider runs in place of those of the caller's dialect. Pure.

Google's API has a search, a reader of pages and a runner of programs. If a call is forced, models
refuse them, and before Gemini 3 beside functions too; they cannot be kept to some hosts.
"""

import re
from enum import Enum, auto
from typing import Final

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC, DIALECT_RESPONSES
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, ToolChoice, WebTool
from services.inference.providers.base import Target
from services.inference.providers.googles_models import is_before_3

_FORCED = (ToolChoice.MODE_ANY, ToolChoice.MODE_TOOL)
# Types of tools that run programs, by dialect.
_CODE: Final = {
    DIALECT_ANTHROPIC: re.compile(r"code_execution_\d{8}"),
    DIALECT_RESPONSES: re.compile("code_interpreter"),
}


class NativeTool(Enum):
    """A tool that a provider runs."""

    SEARCH = auto()
    FETCH = auto()
    CODE = auto()


_WEB: Final = {
    WebTool.KIND_SEARCH: NativeTool.SEARCH,
    WebTool.KIND_FETCH: NativeTool.FETCH,
}


def native_tool(tool: Tool) -> NativeTool | None:
    """Return what a caller's tool is for, if a provider may have such a tool of its own."""
    if tool.HasField("web"):
        return _WEB.get(tool.web.kind)  # no provider has the caller's vector stores
    pattern = _CODE.get(tool.extra.dialect) if tool.opaque else None
    if pattern is None:
        return None
    try:
        fields = orjson.loads(tool.extra.json)
    except orjson.JSONDecodeError:
        return None
    kind = fields.get("type") if isinstance(fields, dict) else None
    return NativeTool.CODE if isinstance(kind, str) and pattern.fullmatch(kind) else None


def may_run_natively(request: GenerateRequest, target: Target) -> bool:
    """Return whether the model's provider has all of the request's tools itself.

    It then runs all of them but functions, unless the gateway does.
    """
    if target.native_tools is False or request.tool_choice.mode in _FORCED:
        return False
    web = [tool.web for tool in request.tools if tool.HasField("web")]
    if request.HasField("web_search"):
        web.append(request.web_search)
    if any(tool.allowed_domains or tool.blocked_domains for tool in web):
        return False
    others = [tool for tool in request.tools if native_tool(tool) is None]
    if len(others) == len(request.tools) and not web:
        return False
    return not others or (
        not is_before_3(target.upstream) and not any(tool.opaque for tool in others)
    )
