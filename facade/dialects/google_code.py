"""Programs that Google's models run, as blocks and items of other dialects, and back. Pure.

A program and its output are two parts of an answer. Anthropic's code execution has two blocks for
them, and OpenAI's code interpreter one item. Sent back by their caller, they are Google's parts
again, and a text for any other provider.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_GEMINI, Opaque

Json = dict[str, Any]

# Prefixes of the ids of blocks and items.
_BLOCK, _ITEM = "srvtoolu_google_", "ci_google_"
_CODE, _RESULT = "executableCode", "codeExecutionResult"
_OK, _FAILED = "OUTCOME_OK", "OUTCOME_FAILED"
_TOOL: Final = "code_execution"
_RESULT_BLOCK: Final = "code_execution_tool_result"
_ITEM_TYPE: Final = "code_interpreter_call"
_PROGRAM_BLOCK: Final = "server_tool_use"
_MARKS: Final = (b'"executableCode"', b'"codeExecutionResult"')


class Program(NamedTuple):
    """A program; `key` is that of its output."""

    key: str
    code: str


class Output(NamedTuple):
    """The output of the program with the same key."""

    key: str
    text: str
    has_failed: bool


def read_part(opaque: Opaque) -> Program | Output | None:
    """Return the program or the output in a part of an answer; None for any other part."""
    if opaque.dialect != DIALECT_GEMINI or not any(mark in opaque.json for mark in _MARKS):
        return None
    match orjson.loads(opaque.json):
        case {"executableCode": {"code": str(code), "id": str(key)}}:
            return Program(key, code)
        case {"codeExecutionResult": {"id": str(key)} as result}:
            text = result.get("output")
            has_failed = result.get("outcome") != _OK
            return Output(key, text if isinstance(text, str) else "", has_failed)
    return None


def to_block(part: Program | Output) -> Json:
    """Return Anthropic's block of a program or of its output."""
    call_id = _BLOCK + part.key
    if isinstance(part, Program):
        name, fields = _TOOL, {"code": part.code}
        return {"type": _PROGRAM_BLOCK, "id": call_id, "name": name, "input": fields}
    text = part.text
    content = {
        "type": "code_execution_result",
        "stdout": "" if part.has_failed else text,
        "stderr": text if part.has_failed else "",
        "return_code": int(part.has_failed),
        "content": [],
    }
    return {"type": _RESULT_BLOCK, "tool_use_id": call_id, "content": content}


def from_block(block: Mapping[str, Any]) -> Opaque | None:
    """Return the part of a block that a caller sent back; None for any other block."""
    match block:
        case {"type": "server_tool_use", "id": str(key), "input": {"code": str(code)}}:
            return _program(code) if key.startswith(_BLOCK) else None
        case {"type": "code_execution_tool_result", "tool_use_id": str(key), "content": content}:
            if key.startswith(_BLOCK) and isinstance(content, dict):
                texts = [content.get(name) for name in ("stdout", "stderr")]
                output = "".join(text for text in texts if isinstance(text, str))
                return _output(output, has_failed=bool(content.get("return_code")))
    return None


def item_id(program: Program) -> str:
    """Return the id of the item of a program."""
    return _ITEM + program.key


def to_item(program: Program, output: Output | None, status: str) -> Json:
    """Return OpenAI's item of a program, with its output once there is one."""
    logs = None if output is None else [{"type": "logs", "logs": output.text}]
    return {
        "id": item_id(program),
        "type": _ITEM_TYPE,
        "status": status,
        "code": program.code,
        "container_id": "",
        "outputs": logs,
    }


def from_item(item: Mapping[str, Any]) -> list[Opaque]:
    """Return the parts of an item that a caller sent back; none for any other item."""
    match item:
        case {"type": "code_interpreter_call", "id": str(key), "code": str(code)}:
            if key.startswith(_ITEM):
                outputs = item.get("outputs")
                logs = [_logs(one) for one in outputs] if isinstance(outputs, list) else []
                has_failed = item.get("status") == "failed"
                results = [_output("".join(logs), has_failed=has_failed)] if logs else []
                return [_program(code), *results]
    return []


def _logs(output: object) -> str:
    logs = output.get("logs") if isinstance(output, dict) else None
    return logs if isinstance(logs, str) else ""


def _program(code: str) -> Opaque:
    return _part({_CODE: {"language": "PYTHON", "code": code}})


def _output(text: str, *, has_failed: bool) -> Opaque:
    return _part({_RESULT: {"outcome": _FAILED if has_failed else _OK, "output": text}})


def _part(fields: Json) -> Opaque:
    return Opaque(dialect=DIALECT_GEMINI, json=orjson.dumps(fields))
