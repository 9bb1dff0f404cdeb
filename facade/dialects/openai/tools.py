"""Translate tools of a chat and the tool choice."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Sized
from typing import TypeVar

from facade.dialects.openai.types import FunctionDefinition, NamedToolChoice, Tool
from facade.dialects.openai.unknown_fields import keep_part_fields
from facade.dialects.validation import to_json, to_opaque
from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, ToolChoice
from services.common.errors import invalid
from services.common.text.texts import quoted

# Types of a dialect: the choice of a tool, and the tools.
Choice = TypeVar("Choice")
Tools = TypeVar("Tools", bound=Sized)

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_FUNCTION_FIELDS = frozenset({"name", "description", "parameters", "strict"})
_CHOICE_TYPES = frozenset({"function", "custom", "allowed_tools"})
TOOL_CHOICE_MODES = {
    "auto": ToolChoice.MODE_AUTO,
    "required": ToolChoice.MODE_ANY,
    "none": ToolChoice.MODE_NONE,
}


def add_tools(request: GenerateRequest, tools: Sequence[Tool], path: str) -> None:
    """Add tools to the request; `path` is the path of the array.

    Tools other than functions are kept as JSON for providers of this dialect.

    Raises:
        GatewayError: invalid, if a definition is missing, or a name is malformed or duplicate.
    """
    seen: dict[str, int] = {}
    for index, tool in enumerate(tools):
        added = _tool(tool, f"{path}[{index}]")
        earlier = seen.setdefault(added.name, index) if added.name else index
        if earlier != index:
            place = f"{path}[{index}].{tool['type']}.name"
            raise invalid(
                place,
                f"{place}: must be unique; {path}[{earlier}] already has the name "
                f"{quoted(added.name)}",
            )
        request.tools.append(added)


def add_functions(
    request: GenerateRequest, functions: Sequence[FunctionDefinition], path: str
) -> None:
    """Add functions to the request as tools; `path` is the path of the array.

    Raises:
        GatewayError: as `add_tools`.
    """
    seen: set[str] = set()
    for index, function in enumerate(functions):
        name, place = function["name"], f"{path}[{index}].name"
        check_name(name, place)
        if name in seen:
            raise invalid(
                place,
                f"{place}: must be unique; another function already has the name {quoted(name)}",
            )
        seen.add(name)
        tool: Tool = {"type": "function", "function": function}
        request.tools.append(_function(name, tool, f"{path}[{index}]"))


def set_tool_choice(
    request: GenerateRequest,
    choice: str | Choice | None,
    parallel: bool | None,
    path: str,
    tools: Tools,
    read_named: Callable[[Choice, Tools, str], ToolChoice],
) -> None:
    """Set the tool choice and whether calls may be parallel.

    Args:
        request: modified in place.
        choice: a mode, or the choice of a tool.
        parallel: the value of `parallel_tool_calls`.
        path: path of the choice.
        tools: the tools of the request, or their names; possibly empty.
        read_named: translates the choice of a tool at a path.

    Raises:
        GatewayError: invalid, if the choice names an unknown tool.
    """
    if not tools:
        # Without tools, `auto` and `none` have no effect, and some servers reject them.
        if choice not in (None, "auto", "none"):
            raise invalid(path, f"{path}: must be auto or none if there are no tools")
        return
    if choice is None and parallel is None:
        return
    if isinstance(choice, str) or choice is None:
        request.tool_choice.mode = TOOL_CHOICE_MODES[choice or "auto"]
    else:
        request.tool_choice.CopyFrom(read_named(choice, tools, path))
    if parallel is not None:
        request.tool_choice.disable_parallel_tool_use = not parallel


def is_name(name: str) -> bool:
    """Return whether a tool name is valid."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str, path: str) -> None:
    """Check the name of a tool.

    Raises:
        GatewayError: invalid.
    """
    if not is_name(name):
        raise invalid(path, f"{path}: must be 1 to 128 letters, digits, underscores and dashes")


def _tool(tool: Tool, path: str) -> inference_pb2.Tool:
    kind = tool["type"]
    if kind not in ("function", "custom"):
        opaque = to_opaque(DIALECT_OPENAI, tool, path)
        return inference_pb2.Tool(extra=opaque, opaque=True)
    definition = tool.get("function") if kind == "function" else tool.get("custom")
    if definition is None:
        raise invalid(f"{path}.{kind}", f"{path}.{kind}: is required if type is {kind}")
    name = definition["name"]
    check_name(name, f"{path}.{kind}.name")
    if kind == "custom":
        return inference_pb2.Tool(
            name=name, extra=to_opaque(DIALECT_OPENAI, tool, path), opaque=True
        )
    return _function(name, tool, f"{path}.function")


def _function(name: str, tool: Tool, path: str) -> inference_pb2.Tool:
    function = tool["function"]
    added = inference_pb2.Tool(
        name=name,
        description=function.get("description") or "",
        strict=function.get("strict"),
    )
    if parameters := function.get("parameters"):
        added.input_schema = to_json(parameters, f"{path}.parameters")
    if extra := _unnamed(tool, function):
        keep_part_fields(added, extra, path)
    return added


def _unnamed(tool: Tool, function: Mapping[str, object]) -> dict[str, object]:
    """Return the unknown fields, in their original position in the tool."""
    extra: dict[str, object] = {k: v for k, v in tool.items() if k not in ("type", "function")}
    if inner := {k: v for k, v in function.items() if k not in _FUNCTION_FIELDS}:
        extra["function"] = inner
    return extra


def read_choice(choice: NamedToolChoice, names: Collection[str], path: str) -> ToolChoice:
    """Translate the choice of a tool, whose name must be in `names`.

    Raises:
        GatewayError: invalid.
    """
    kind = choice["type"]
    if kind not in _CHOICE_TYPES:
        return ToolChoice(extra=to_opaque(DIALECT_OPENAI, choice, path))
    if choice.get(kind) is None:
        raise invalid(f"{path}.{kind}", f"{path}.{kind}: is required if type is {kind}")
    for name, place in _names(choice, path):
        if not isinstance(name, str) or name not in names:
            not_this = f", not {quoted(name)}" if isinstance(name, str) else ""
            raise invalid(place, f"{place}: must be the name of one of the tools{not_this}")
    if kind == "function":
        named = ToolChoice(mode=ToolChoice.MODE_TOOL, name=choice["function"]["name"])
        if len(choice) > 2 or len(choice["function"]) > 1:
            named.extra.CopyFrom(to_opaque(DIALECT_OPENAI, choice, path))
        return named
    # Custom tools and allowed tools exist only in this dialect.
    return ToolChoice(extra=to_opaque(DIALECT_OPENAI, choice, path))


def _names(choice: NamedToolChoice, path: str) -> Iterator[tuple[object, str]]:
    if choice["type"] == "allowed_tools":
        for index, tool in enumerate(choice["allowed_tools"]["tools"]):
            kind = tool.get("type")
            named = tool.get(kind) if isinstance(kind, str) else None
            if kind in ("function", "custom"):
                place = f"{path}.allowed_tools.tools[{index}].{kind}.name"
                yield (named.get("name") if isinstance(named, dict) else None), place
    elif choice["type"] == "function":
        yield choice["function"]["name"], f"{path}.function.name"
    else:
        yield choice["custom"]["name"], f"{path}.custom.name"
