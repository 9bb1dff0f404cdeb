"""Replacement of the caller's own kinds of tools by functions, for other providers. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_ANTHROPIC,
    DIALECT_OPENAI,
    DIALECT_RESPONSES,
    Block,
    Dialect,
    Opaque,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, ToolChoice
from services.inference.client_tools import anthropic, custom, tool_search
from services.inference.client_tools.client_tool import ClientTool
from services.inference.client_tools.definitions import (
    Fields,
    function_of,
    name_in,
    object_in,
    tools_in,
)
from services.inference.client_tools.namespaces import (
    NAMESPACE,
    fields_in_namespace,
    function_name,
)
from services.inference.request.paths import block_path
from services.inference.request.request_changes import copied

_OPENAI = (DIALECT_OPENAI, DIALECT_RESPONSES)
_FUNCTION = "function"
_ADDITIONAL = "additional_tools"
# Words in the JSON of tools, items and calls that are rewritten.
_TOOL_MARKS = (
    *(b'"custom"', b'"namespace"', b'"tool_search"'),
    *(b'"bash_', b'"text_editor_', b'"memory_'),
)
_ITEM_MARKS = {
    DIALECT_RESPONSES: (b'"tool_search_', b'"additional_tools"'),
    DIALECT_ANTHROPIC: (b'"tool_addition"', b'"tool_removal"'),
}


class WithFunctions(NamedTuple):
    """A request whose tools have become functions.

    Attributes:
        request: the request; the original one if it has nothing to replace.
        tools: the caller's tools whose calls are restored, by the name of the function.
        dropped: paths of dropped fields.
        adapted: paths of items that became text, with `:text`.
        schema_paths: paths of the schemas of functions that have no place of their own, by name.
    """

    request: GenerateRequest
    tools: Mapping[str, ClientTool] = {}
    dropped: Sequence[str] = ()
    adapted: Sequence[str] = ()
    schema_paths: Mapping[str, str] = {}


def with_functions(request: GenerateRequest, dialect: Dialect.ValueType) -> WithFunctions:
    """Replace the caller's kinds of tools by functions, for a provider of another dialect.

    Args:
        request: the request; not modified.
        dialect: the dialect of the provider.

    Raises:
        GatewayError: invalid, for a malformed tool.
    """
    if not (any(map(_is_replaced, request.tools)) or any(map(_is_rewritten, _blocks(request)))):
        return WithFunctions(request)
    rewriting = _Rewriting(copied(request), dialect)
    rewriting.replace_tools()
    rewriting.replace_items()
    rewriting.add_functions()
    rewriting.replace_choice()
    rewriting.replace_calls()
    return WithFunctions(
        rewriting.request,
        rewriting.tools,
        rewriting.dropped,
        rewriting.adapted,
        rewriting.schema_paths,
    )


def _blocks(request: GenerateRequest) -> Iterator[Block]:
    for message in request.messages:
        yield from message.blocks


def _is_replaced(tool: Tool) -> bool:
    """Return whether a tool may be one in place of which functions are sent."""
    return tool.opaque and any(mark in tool.extra.json for mark in _TOOL_MARKS)


def _is_rewritten(block: Block) -> bool:
    """Return whether a block is a call or an item that other providers get in another form."""
    if block.HasField("tool_use"):
        return block.tool_use.freeform or bool(fields_in_namespace(block))
    return _is_tool_item(block)


def _is_tool_item(block: Block) -> bool:
    if not block.HasField("opaque"):
        return False
    json = block.opaque.json
    return any(mark in json for mark in _ITEM_MARKS.get(block.opaque.dialect, ()))


class _Rewriting:
    """A copy of a request during its rewriting."""

    def __init__(self, request: GenerateRequest, dialect: Dialect.ValueType) -> None:
        self.request = request
        self.tools: dict[str, ClientTool] = {}
        self.dropped: list[str] = []
        self.adapted: list[str] = []
        self.schema_paths: dict[str, str] = {}
        self._dialect = dialect
        # The names of the tools that the caller gave one.
        self._own_names = frozenset(tool.name for tool in request.tools if tool.name)
        # The functions in place of tools, by their names: those with a place among the tools of the
        # request, and those that follow.
        self._placed: dict[str, Tool] = {}
        self._added: dict[str, Tool] = {}
        self._removed: set[str] = set()
        # The first function of each namespace that has a description.
        self._described: dict[str, tuple[str, str]] = {}
        self._search = tool_search.NAME
        while self._search in self._own_names:
            self._search += "_"

    def replace_tools(self) -> None:
        """Replace the tools of the request.

        Tools keep their indexes: the first function of a namespace takes its place, and the others
        follow all tools.
        """
        for index, tool in enumerate(self.request.tools):
            if not tool.opaque or tool.extra.dialect == self._dialect:
                continue
            fields = object_in(tool.extra)
            self._report_grammar(fields, tool.extra.dialect, index)
            functions = self._functions(fields, tool.extra, f"tools[{index}].extra")
            for number, function in enumerate(functions):
                if number == 0:
                    tool.CopyFrom(function)
                    self._placed[function.name] = tool
                else:
                    self._define(function)

    def _report_grammar(self, fields: Fields, dialect: Dialect.ValueType, index: int) -> None:
        definition = custom.definition_of(fields)
        if custom.grammar_of(definition):
            inner = "custom.format" if dialect == DIALECT_OPENAI else "format"
            self.dropped.append(f"tools[{index}].extra.{inner}")

    def _define(self, function: Tool) -> None:
        """Add a function; one of the same name is defined anew."""
        placed = self._placed.get(function.name)
        if placed is not None:
            placed.CopyFrom(function)
        elif function.name not in self._own_names:
            self._added[function.name] = function

    def replace_choice(self) -> None:
        """Replace the choice of a custom tool, or of a tool in a namespace."""
        choice = self.request.tool_choice
        if choice.mode != ToolChoice.MODE_UNSPECIFIED or choice.extra.dialect not in _OPENAI:
            return
        fields = object_in(choice.extra)
        chosen = custom.definition_of(fields) or fields
        if fields.get("type") not in (_FUNCTION, custom.CUSTOM):
            return
        name = str(chosen.get("name", ""))
        called = (function for function, tool in self.tools.items() if tool.name == name)
        choice.ClearField("extra")
        choice.mode, choice.name = ToolChoice.MODE_TOOL, next(called, name)

    def _functions(self, fields: Fields, opaque: Opaque, path: str) -> Sequence[Tool]:
        """Return the functions in place of a tool; none for a tool that only its provider has."""
        if opaque.dialect == DIALECT_ANTHROPIC:
            function = anthropic.function_of(fields)
            return () if function is None else (function,)
        if opaque.dialect not in _OPENAI:
            return ()
        if fields.get("type") == NAMESPACE:
            return [*self._functions_of_namespace(fields, opaque, path)]
        if tool_search.is_run_by_caller(fields):
            self.tools[self._search] = ClientTool(tool_search.NAME, is_search=True)
            return (tool_search.function_of(fields, self._search),)
        function = self._function(fields, "", opaque, path)
        return () if function is None else (function,)

    def _functions_of_namespace(self, fields: Fields, opaque: Opaque, path: str) -> Iterator[Tool]:
        namespace, description = name_in(fields, path), fields.get("description")
        for where, member in tools_in(fields, path):
            function = self._function(member, namespace, opaque, where)
            if function is None:
                self.dropped.append(where)
                continue
            self._report_flags(function, where)
            if isinstance(description, str) and description:
                self._described.setdefault(namespace, (function.name, description))
            yield function

    def _function(self, fields: Fields, namespace: str, opaque: Opaque, path: str) -> Tool | None:
        """Return the function in place of a function or custom tool; None for other tools."""
        definition = custom.definition_of(fields)
        if not definition and fields.get("type") != _FUNCTION:
            return None
        name = name_in(definition or fields, path)
        called = self._name_of(namespace, name)
        self.schema_paths[called] = f"{path}.parameters"
        if namespace or definition:
            self.tools[called] = ClientTool(name, namespace, is_freeform=bool(definition))
        if definition:
            return custom.function_of(fields, called, opaque)
        return function_of(fields, called, path, opaque.dialect)

    def _report_flags(self, function: Tool, path: str) -> None:
        """Report the flags of a function that has no place of its own among the caller's tools."""
        self.dropped += (f"{path}.{flag}" for flag in object_in(function.extra))
        function.ClearField("extra")

    def _name_of(self, namespace: str, name: str) -> str:
        """Return the name of the function in place of a tool."""
        return function_name(namespace, name, self._own_names) if namespace else name

    def replace_items(self) -> None:
        """Replace calls and results of tool searches, and offer the tools that are added."""
        for index, message in enumerate(self.request.messages):
            without_content = []
            for place, block in enumerate(message.blocks):
                if not _is_tool_item(block):
                    continue
                item, path = object_in(block.opaque), block_path(index, place)
                if item.get("type") == _ADDITIONAL:
                    self._offer(item, block.opaque, path)
                    without_content.append(place)
                elif item.get("type") in anthropic.CHANGES:
                    if self._change_tool(item, path):
                        without_content.append(place)
                else:
                    self._replace_item(block, item, path)
            for place in reversed(without_content):
                del message.blocks[place]

    def _change_tool(self, item: Fields, path: str) -> bool:
        """Offer a tool from now on, or no longer; return False for tools of MCP servers."""
        change = anthropic.change_of(item, path)
        if change is None:
            return False
        if item.get("cache_control") is not None:
            self.dropped.append(f"{path}.cache_control")
        if change.definition is not None:
            self._define(change.definition)
        if change.is_removal:
            self._removed.add(change.name)
        else:
            self._removed.discard(change.name)
        return True

    def _replace_item(self, block: Block, item: Fields, path: str) -> None:
        kind, call_id = item.get("type"), item.get("call_id")
        if not isinstance(call_id, str) or item.get("execution") == "server":
            call_id = ""
        if kind == tool_search.OUTPUT:
            names = self._offer(item, block.opaque, path)
            block.CopyFrom(tool_search.output_block(call_id, names))
            if not call_id:
                self.adapted.append(f"{path}:text")
        elif kind == tool_search.CALL and call_id:
            block.CopyFrom(tool_search.call_block(item, call_id, self._search))

    def _offer(self, item: Fields, opaque: Opaque, path: str) -> Sequence[str]:
        """Offer the tools of an item, and return the names of their functions."""
        names = []
        for where, fields in tools_in(item, path):
            functions = self._functions(fields, opaque, where)
            if not functions:
                self.dropped.append(where)
            for function in functions:
                self._report_flags(function, where)
                self._define(function)
                names.append(function.name)
        return names

    def add_functions(self) -> None:
        """Add the functions without a place, and the descriptions of namespaces.

        Tools that were removed later are left out.
        """
        # Once for each namespace, as they may be long.
        for namespace, (called, description) in self._described.items():
            function = self._placed.get(called) or self._added.get(called)
            if function is not None:
                about = f"[About all tools of {namespace}] {description}"
                function.description = f"{function.description}\n\n{about}".lstrip()
        self.request.tools.extend(self._added.values())
        if self._removed:
            offered = [tool for tool in self.request.tools if tool.name not in self._removed]
            del self.request.tools[:]
            self.request.tools.extend(offered)

    def replace_calls(self) -> None:
        """Replace the names and the arguments of earlier calls."""
        for block in _blocks(self.request):
            if not block.HasField("tool_use"):
                continue
            if fields := fields_in_namespace(block):
                block.tool_use.name = self._name_of(fields[NAMESPACE], block.tool_use.name)
                left = {name: value for name, value in fields.items() if name != NAMESPACE}
                block.extra.json = orjson.dumps(left)
            if block.tool_use.freeform:
                custom.wrap_call(block)
