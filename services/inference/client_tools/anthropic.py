"""Anthropic's tools that the caller runs, as functions, and changes of tools. Pure.

Anthropic trains its models on these tools, so that a request names only their type. Models of other
providers are told what they take. Calls have the same name and arguments in both forms.

A conversation may add and remove tools from a message on. Other providers offer the tools that are
left at its end.

Sources: Anthropic's "Bash tool", "Text editor tool" and "Memory tool", and its reference of the
blocks `tool_addition` and `tool_removal`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from gateway.inference.v1.inference_pb2 import Tool
from services.inference.client_tools.definitions import function_of as usual_function_of
from services.inference.client_tools.definitions import name_in

CHANGES = ("tool_addition", "tool_removal")
_READ = frozenset({"type", "name", "cache_control"})
_TEXT = {"type": "string"}
_LINE = {"type": "integer"}
_RANGE = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "With `view` of a file: the first and the last line, from 1; -1 is the end.",
}


class _Definition(NamedTuple):
    description: str
    properties: Mapping[str, Any]
    required: Sequence[str]


def _described(description: str, kind: Mapping[str, Any] = _TEXT) -> Mapping[str, Any]:
    return {**kind, "description": description}


_BASH = _Definition(
    "Run a command in a bash session that stays open between calls.",
    {
        "command": _described("The command to run; required unless `restart` is true."),
        "restart": _described("Whether to restart the session.", {"type": "boolean"}),
    },
    (),
)
_COMMANDS = ("view", "create", "str_replace", "insert")


def _editor(
    description: str, inserted: str, commands: Sequence[str], **further: Any
) -> _Definition:
    """Return a tool that edits text files; `inserted` is the name of the text to insert."""
    properties = {
        "command": {"type": "string", "enum": [*commands]},
        "path": _described("The path of the file or directory."),
        "file_text": _described("With `create`: the content of the file."),
        "old_str": _described("With `str_replace`: the text to replace, which occurs once."),
        "new_str": _described("With `str_replace`: the text in its place."),
        "insert_line": _described("With `insert`: the line to insert after; 0: first.", _LINE),
        "view_range": _RANGE,
        **further,
    }
    properties.setdefault(inserted, _described("With `insert`: the text to insert."))
    if inserted == "new_str":
        properties[inserted] = _described(
            "With `str_replace`: the text in its place; with `insert`: the text to insert."
        )
    return _Definition(description, properties, ("command",) if further else ("command", "path"))


_FILES = "View, create and edit text files."
_WITH_UNDO = _editor(_FILES, "new_str", (*_COMMANDS, "undo_edit"))
_EDITOR = _editor(_FILES, "insert_text", _COMMANDS)
_MEMORY = _editor(
    "Read and write files below /memories, which are kept between conversations. View the "
    "directory before you begin, and record there what will be needed later.",
    "insert_text",
    (*_COMMANDS, "delete", "rename"),
    old_path=_described("With `rename`: the present path."),
    new_path=_described("With `rename`: the new path."),
)
_NEWEST = {"bash": _BASH, "text_editor": _EDITOR, "memory": _MEMORY}
_OLD = {"text_editor_20241022": _WITH_UNDO, "text_editor_20250124": _WITH_UNDO}
_TYPE = re.compile(r"(bash|text_editor|memory)_[0-9]{8}")


def function_of(fields: Mapping[str, Any]) -> Tool | None:
    """Return the function in place of a tool of Anthropic, or None if the caller does not run it.

    Flags of the tool are kept, to be reported as dropped.
    """
    kind, name = fields.get("type"), fields.get("name")
    match = _TYPE.fullmatch(kind) if isinstance(kind, str) else None
    if match is None or not isinstance(name, str):
        return None
    definition = _OLD.get(match[0], _NEWEST[match[1]])
    schema = {
        "type": "object",
        "properties": definition.properties,
        "required": [*definition.required],
    }
    function = Tool(
        name=name, description=definition.description, input_schema=orjson.dumps(schema)
    )
    if isinstance(cache_control := fields.get("cache_control"), dict):
        function.cache_control = orjson.dumps(cache_control)
    flags = {
        name: value for name, value in fields.items() if name not in _READ and value is not None
    }
    if flags:
        function.extra.dialect, function.extra.json = DIALECT_ANTHROPIC, orjson.dumps(flags)
    return function


class ToolChange(NamedTuple):
    """A change of the tools that are offered.

    Attributes:
        name: the name of the tool.
        is_removal: whether it is offered no longer.
        definition: the tool, if it is new.
    """

    name: str
    is_removal: bool
    definition: Tool | None = None


def change_of(block: Mapping[str, Any], path: str) -> ToolChange | None:
    """Return the change of a block `tool_addition` or `tool_removal`; None for tools of a server.

    Raises:
        GatewayError: invalid, for a tool without a name or with a malformed schema.
    """
    is_removal = block.get("type") == CHANGES[1]
    changed: Any = block.get("tool")
    kind = changed.get("type") if isinstance(changed, dict) else None
    if kind == "tool_reference":
        return ToolChange(name_in(changed, f"{path}.tool"), is_removal)
    fields = changed.get("definition") if kind == "tool_definition" else None
    if not isinstance(fields, dict):
        return None
    where = f"{path}.tool.definition"
    name = name_in(fields, where)
    if fields.get("type") in (None, "custom"):
        tool = usual_function_of(fields, name, where, DIALECT_ANTHROPIC, "input_schema")
        return ToolChange(name, is_removal, tool)
    own = function_of(fields)
    return None if own is None else ToolChange(name, is_removal, own)
