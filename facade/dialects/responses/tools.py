"""Translate tools of a response and the tool choice."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from facade.dialects.openai.file_search import FILE_SEARCH, file_search_tool, searches_own_files
from facade.dialects.openai.tools import check_name
from facade.dialects.openai.web_search import web_search_tool
from facade.dialects.responses.tool_types import NamedToolChoice, Tool
from facade.dialects.responses.unknown_fields import keep_unknown_fields
from facade.dialects.validation import to_json, to_opaque
from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, ToolChoice
from services.common.errors import invalid
from services.common.text.texts import quoted

_SEARCH = "web_search"
_NAMED = frozenset({"function", "custom"})
_NAMESPACE = "namespace"
_FUNCTIONS = frozenset({"function", _NAMESPACE})
_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})


def add_tools(
    request: GenerateRequest, tools: Sequence[Tool], path: str, max_searches: int | None
) -> None:
    """Add tools to the request; `path` is the path of the array.

    Tools other than functions are kept as JSON for providers of this dialect. A web search is also
    translated to a tool of the gateway, and a search of the gateway's vector stores only to that.

    Args:
        request: modified in place.
        tools: the tools.
        path: path of the array.
        max_searches: the `max_tool_calls` of the request.

    Raises:
        GatewayError: invalid, if a name is malformed or duplicate.
    """
    seen: dict[str, int] = {}
    for index, tool in enumerate(tools):
        added = _tool(cast("dict[str, Any]", tool), f"{path}[{index}]")
        if added.HasField("web") and max_searches is not None:
            added.web.max_uses = max_searches
        earlier = seen.setdefault(added.name, index) if added.name else index
        if earlier != index:
            place = f"{path}[{index}].name"
            raise invalid(
                place,
                f"{place}: must be unique; {path}[{earlier}] already has the name "
                f"{quoted(added.name)}",
            )
        request.tools.append(added)
    if any(tool["type"] in _FUNCTIONS for tool in tools):
        # Coding agents send OpenAI's own tools beside their functions, whatever the model.
        for added, tool in zip(request.tools, tools, strict=True):
            added.optional = tool["type"] not in _NAMED and not searches_own_files(tool)


def _tool(tool: Mapping[str, Any], path: str) -> inference_pb2.Tool:
    kind = tool["type"]
    if searches_own_files(tool):
        web = file_search_tool(tool, path)
        return inference_pb2.Tool(name=FILE_SEARCH, web=web)
    if kind not in _NAMED:
        added = inference_pb2.Tool(extra=to_opaque(DIALECT_RESPONSES, tool, path), opaque=True)
        if kind.startswith(_SEARCH):
            added.name = _SEARCH
            added.web.CopyFrom(web_search_tool(tool, path))
        return added
    name = tool["name"]
    check_name(name, f"{path}.name")
    if kind == "custom":
        return inference_pb2.Tool(
            name=name, extra=to_opaque(DIALECT_RESPONSES, tool, path), opaque=True
        )
    added = inference_pb2.Tool(
        name=name, description=tool.get("description") or "", strict=tool.get("strict")
    )
    if parameters := tool.get("parameters"):
        added.input_schema = to_json(parameters, f"{path}.parameters")
    keep_unknown_fields(added, tool, _FUNCTION, path)
    return added


def read_choice(
    choice: NamedToolChoice, tools: Sequence[Mapping[str, Any]], path: str
) -> ToolChoice:
    """Translate the choice of a tool, which must be one of `tools`.

    Raises:
        GatewayError: invalid.
    """
    kind = choice["type"]
    names = {*_names_of(tools)}
    for name, place in _names(choice, path):
        if not isinstance(name, str) or name not in names:
            not_this = f", not {quoted(name)}" if isinstance(name, str) else ""
            raise invalid(place, f"{place}: must be the name of one of the tools{not_this}")
    if kind == "function" and not _is_own_name(choice["name"], tools):
        # A function in a namespace, which only this dialect has.
        return ToolChoice(extra=to_opaque(DIALECT_RESPONSES, choice, path))
    if kind == "function":
        named = ToolChoice(mode=ToolChoice.MODE_TOOL, name=choice["name"])
        if len(choice) > 2:
            named.extra.CopyFrom(to_opaque(DIALECT_RESPONSES, choice, path))
        return named
    if kind == FILE_SEARCH and any(map(searches_own_files, tools)):
        return ToolChoice(mode=ToolChoice.MODE_TOOL, name=FILE_SEARCH)
    if kind.startswith(_SEARCH) and _has_search(tools):
        opaque = to_opaque(DIALECT_RESPONSES, choice, path)
        opaque.covered_paths.append("type")
        return ToolChoice(mode=ToolChoice.MODE_TOOL, name=_SEARCH, extra=opaque)
    # The others exist only in this dialect.
    return ToolChoice(extra=to_opaque(DIALECT_RESPONSES, choice, path))


def _is_own_name(name: str, tools: Collection[Mapping[str, Any]]) -> bool:
    return any(tool["type"] in _NAMED and tool["name"] == name for tool in tools)


def _names_of(tools: Collection[Mapping[str, Any]]) -> Iterator[object]:
    """Yield the names of functions and custom tools, also of those in namespaces."""
    for tool in tools:
        if tool["type"] in _NAMED:
            yield tool["name"]
        elif tool["type"] == _NAMESPACE:
            yield from (name for one in tool["tools"] if isinstance(name := one.get("name"), str))


def _has_search(tools: Collection[Mapping[str, Any]]) -> bool:
    return any(tool["type"].startswith(_SEARCH) for tool in tools)


def _names(choice: NamedToolChoice, path: str) -> Iterator[tuple[object, str]]:
    kind = choice["type"]
    if kind in _NAMED:
        yield choice.get("name"), f"{path}.name"
    elif kind == "allowed_tools":
        for index, tool in enumerate(choice.get("tools") or ()):
            if tool.get("type") in _NAMED:
                yield tool.get("name"), f"{path}.tools[{index}].name"
