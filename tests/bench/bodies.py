"""The body that a coding agent sends at every step: a system prompt, tools, a conversation.

It has the shapes and sizes of real ones: 20 tools whose schemas are nested now and then, and
31 messages in which the model calls tools and gets what files and commands held. Both dialects
say the same. No part of it is random.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from tests.bench.wire import Dialect

_Schema = dict[str, Any]

_TEXT: _Schema = {"type": "string"}
_WHOLE: _Schema = {"type": "integer", "minimum": 0}
_FLAG: _Schema = {"type": "boolean", "default": False}
_PATH: _Schema = {"type": "string", "description": "Absolute path, inside the working folder."}
_PATHS: _Schema = {"type": "array", "items": _PATH, "minItems": 1, "maxItems": 50}
_TIMEOUT: _Schema = {"type": "integer", "minimum": 1, "maximum": 600_000, "default": 120_000}
_PLACE: _Schema = {
    "type": "object",
    "properties": {"path": _PATH, "line": _WHOLE, "column": _WHOLE},
    "required": ["path", "line", "column"],
    "additionalProperties": False,
}
_EDITS: _Schema = {
    "type": "array",
    "description": "Edits in the order in which they are made; all of them or none.",
    "items": {
        "type": "object",
        "properties": {
            "old": {"type": "string", "description": "Text as it stands in the file, once."},
            "new": {"type": "string", "description": "What replaces it."},
            "everywhere": _FLAG,
        },
        "required": ["old", "new"],
        "additionalProperties": False,
    },
    "minItems": 1,
}
_TASKS: _Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "id": _TEXT,
            "content": {"type": "string", "minLength": 1, "maxLength": 500},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
            "priority": {"type": "string", "enum": ["high", "medium", "low"]},
        },
        "required": ["id", "content", "status"],
    },
}
_OF_ISSUES: _Schema = {"type": "string", "enum": ["open", "closed", "all"], "default": "open"}
_KIND_OF_SYMBOL: _Schema = {"enum": ["class", "function", "method", "variable", "module"]}
_CELL: _Schema = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}

# Name, what it does, its arguments, and which of them it needs.
_TOOLS: Sequence[tuple[str, str, _Schema, Sequence[str]]] = (
    ("read_file", "Read a file.", {"path": _PATH, "offset": _WHOLE, "limit": _WHOLE}, ["path"]),
    ("read_files", "Read several files at once.", {"paths": _PATHS}, ["paths"]),
    ("write_file", "Write a whole file.", {"path": _PATH, "content": _TEXT}, ["path", "content"]),
    ("edit_file", "Edit a file in place.", {"path": _PATH, "edits": _EDITS}, ["path", "edits"]),
    ("delete_file", "Delete a file.", {"path": _PATH, "recursive": _FLAG}, ["path"]),
    ("move_file", "Move a file.", {"path": _PATH, "to": _PATH, "overwrite": _FLAG}, ["path", "to"]),
    ("list_folder", "List a folder.", {"path": _PATH, "ignore": _PATHS}, ["path"]),
    ("glob", "Find files by a pattern.", {"pattern": _TEXT, "path": _PATH}, ["pattern"]),
    (
        "grep",
        "Search the contents of files with a regular expression.",
        {
            "pattern": {"type": "string", "description": "A regular expression of ripgrep."},
            "path": _PATH,
            "glob": {"type": "string", "description": "Which files, such as `*.{ts,tsx}`."},
            "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"]},
            "before": _WHOLE,
            "after": _WHOLE,
            "ignore_case": _FLAG,
            "multiline": _FLAG,
            "head_limit": _WHOLE,
        },
        ["pattern"],
    ),
    (
        "run_command",
        "Run a command in a shell that stays open.",
        {
            "command": {"type": "string", "description": "What is run, by bash."},
            "description": {"type": "string", "description": "What it does, in ten words."},
            "timeout": _TIMEOUT,
            "in_background": _FLAG,
            "environment": {"type": "object", "additionalProperties": _TEXT},
        },
        ["command"],
    ),
    ("read_output", "Read what a command wrote.", {"job": _TEXT, "filter": _TEXT}, ["job"]),
    ("stop_command", "Stop a command that still runs.", {"job": _TEXT}, ["job"]),
    (
        "run_tests",
        "Run tests of the project.",
        {"paths": _PATHS, "keyword": _TEXT, "stop_at_first": _FLAG, "timeout": _TIMEOUT},
        [],
    ),
    (
        "find_symbol",
        "Find where a symbol is defined.",
        {"name": _TEXT, "kind": _KIND_OF_SYMBOL, "path": _PATH},
        ["name"],
    ),
    (
        "find_references",
        "Find where a symbol is used.",
        {"place": _PLACE, "include_definition": _FLAG, "limit": _WHOLE},
        ["place"],
    ),
    (
        "rename_symbol",
        "Rename a symbol everywhere.",
        {"place": _PLACE, "to": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}},
        ["place", "to"],
    ),
    (
        "edit_notebook",
        "Change a cell of a notebook.",
        {"path": _PATH, "cell": _CELL, "source": _TEXT, "mode": {"enum": ["replace", "insert"]}},
        ["path", "source"],
    ),
    ("write_tasks", "Write the list of tasks.", {"tasks": _TASKS}, ["tasks"]),
    (
        "fetch_page",
        "Fetch a page and answer a question about it.",
        {"url": {"type": "string", "format": "uri"}, "question": _TEXT},
        ["url", "question"],
    ),
    (
        "search_issues",
        "Search the issues of a repository.",
        {
            "repository": {"type": "string", "pattern": "^[^/]+/[^/]+$"},
            "query": _TEXT,
            "state": _OF_ISSUES,
            "labels": {"type": "array", "items": _TEXT, "uniqueItems": True},
        },
        ["repository", "query"],
    ),
)
_OF_EVERY_TOOL = (
    " Use it when nothing more particular does the work. It fails with a message that says what"
    " is wrong and what to try; repeat a call only with other arguments. Paths are absolute, and"
    " nothing outside of the working folder is read or written. Long results are cut in the"
    " middle, with a line that says how much is left out; ask for a part then. Calls that do not"
    " depend on one another belong in one message."
)

_RULES = (
    "Read what is there before you change it, and follow its style in names, comments and layout.",
    "Keep a change as small as the task allows; do not reformat what you do not have to touch.",
    'Run the tests of what you changed, and say which ones you ran: "all of tests/routes".',
    "Never guess the name of a function, a flag or a setting: look it up with `grep` first.",
    "Where two readings of the task are possible, take the simpler one and say which you took.",
    "Do not commit, push or publish anything unless the task says so.\nAsk when in doubt.",
    "Answer in a few sentences — no headings — and give places as `path:line`.",
)
_SECTIONS = ("Reading", "Editing", "Commands", "Tests", "Answers", "Safety")

_CALLS: Sequence[tuple[str, _Schema]] = (
    ("read_file", {"path": "/srv/shop/orders/service.py"}),
    ("grep", {"pattern": r"def \w+_total\(", "path": "/srv/shop", "output_mode": "content"}),
    ("run_command", {"command": "git log --oneline -n 5 -- orders", "timeout": 20_000}),
    (
        "edit_file",
        {
            "path": "/srv/shop/orders/service.py",
            "edits": [
                {
                    "old": "    return sum(line.price for line in lines)\n",
                    "new": "    return sum(line.price * line.count for line in lines)\n",
                }
            ],
        },
    ),
    ("run_tests", {"paths": ["/srv/shop/tests/orders/test_service.py"], "stop_at_first": True}),
)
_STEPS = 15
_RESULT_LINES = 28


@cache
def coding_agent(dialect: Dialect) -> Mapping[str, Any]:
    """Return the fields of an agent's request, for `wire.request`."""
    fields = _of_openai() if dialect == "openai" else _of_anthropic()
    return MappingProxyType(fields)


def _of_openai() -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": _prompt()},
        {"role": "user", "content": _task()},
    ]
    for number, (name, arguments) in enumerate(_steps()):
        call = {
            "id": f"call_{number:024}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        messages += [
            {"role": "assistant", "content": _thought(number), "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": _result(number)},
        ]
    tools = [
        {
            "type": "function",
            "function": {"name": name, "description": description, "parameters": schema},
        }
        for name, description, schema in _tools()
    ]
    return {"messages": messages, "tools": tools, "tool_choice": "auto", "temperature": 0.2}


def _of_anthropic() -> dict[str, Any]:
    kept = {"cache_control": {"type": "ephemeral"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": _task()}]}
    ]
    for number, (name, arguments) in enumerate(_steps()):
        call = {"type": "tool_use", "id": f"toolu_{number:024}", "name": name, "input": arguments}
        result = {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": [{"type": "text", "text": _result(number)}],
        }
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": _thought(number)}, call]},
            {"role": "user", "content": [result]},
        ]
    messages[-1]["content"][-1] |= kept
    tools = [
        {"name": name, "description": description, "input_schema": schema}
        for name, description, schema in _tools()
    ]
    return {
        "system": [{"type": "text", "text": _prompt(), **kept}],
        "messages": messages,
        "tools": tools,
        "tool_choice": {"type": "auto"},
        "temperature": 0.2,
    }


def _tools() -> list[tuple[str, str, _Schema]]:
    return [
        (
            name,
            description + _OF_EVERY_TOOL,
            {
                "type": "object",
                "properties": properties,
                "required": list(required),
                "additionalProperties": False,
            },
        )
        for name, description, properties, required in _TOOLS
    ]


def _prompt() -> str:
    rules = "\n".join(f"- {rule}" for rule in _RULES)
    parts = [f"# {section}\n{rules}\n" for section in _SECTIONS]
    return "You are an agent that works on a repository.\n\n" + "\n".join(parts)


def _task() -> str:
    return (
        "The total of an order is wrong when a line has a count above 1. Find out why, mend it,"
        ' and add a test.\n\n<environment>\nfolder: /srv/shop\nbranch: "main"\n</environment>'
    )


def _steps() -> list[tuple[str, _Schema]]:
    return [_CALLS[number % len(_CALLS)] for number in range(_STEPS)]


def _thought(number: int) -> str:
    return (
        f"Step {number + 1}: the total is summed in `service.py`, so I look at what calls it and"
        " at what its tests expect before I change anything."
    )


def _result(number: int) -> str:
    lines = [
        f'{line:6}\tdef total_{line}(lines: "list[Line]") -> Decimal:  # part {number}\n'
        for line in range(number, number + _RESULT_LINES)
    ]
    return "".join(lines)
