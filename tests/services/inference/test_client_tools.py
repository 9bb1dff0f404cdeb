import json

import pytest

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_ANTHROPIC,
    DIALECT_OPENAI,
    DIALECT_RESPONSES,
    Block,
    Message,
    Opaque,
    ToolUse,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, ToolChoice
from services.inference.client_tools.client_tool import ClientTool
from services.inference.client_tools.rewriting import with_functions

GRAMMAR = {"syntax": "lark", "definition": "start: A"}
OF_RESPONSES = {
    "type": "custom",
    "name": "edit",
    "description": "Edits.",
    "format": {"type": "grammar", **GRAMMAR},
}
OF_CHATS = {
    "type": "custom",
    "custom": {
        "name": "edit",
        "description": "Edits.",
        "format": {"type": "grammar", "grammar": GRAMMAR},
    },
}


def request_of(dialect: int, tool: dict[str, object], choice: object = None) -> GenerateRequest:
    used = Block(tool_use=ToolUse(id="c", name="edit", input='a "b"', freeform=True))
    request = GenerateRequest(dialect=dialect, messages=[Message(blocks=[used])])
    request.tools.add(name="edit", opaque=True, extra=opaque(dialect, tool))
    request.tools.add(name="f", input_schema=b"{}")
    if choice:
        request.tool_choice.extra.CopyFrom(opaque(dialect, choice))
    return request


def opaque(dialect: int, fields: object) -> Opaque:
    return Opaque(dialect=dialect, json=json.dumps(fields).encode())


@pytest.mark.parametrize(
    ("dialect", "tool", "target", "choice", "dropped"),
    [
        (
            DIALECT_RESPONSES,
            OF_RESPONSES,
            DIALECT_OPENAI,
            {"type": "custom", "name": "edit"},
            "tools[0].extra.format",
        ),
        (
            DIALECT_OPENAI,
            OF_CHATS,
            DIALECT_ANTHROPIC,
            {"type": "custom", "custom": {"name": "edit"}},
            "tools[0].extra.custom.format",
        ),
    ],
    ids=["responses", "chats"],
)
def test_a_custom_tool_becomes_a_function(dialect, tool, target, choice, dropped) -> None:
    request = request_of(dialect, tool, choice)
    before = request.SerializeToString(deterministic=True)
    changed, tools, left_out, *_ = with_functions(request, target)
    assert request.SerializeToString(deterministic=True) == before
    assert (tools, list(left_out)) == ({"edit": ClientTool("edit", is_freeform=True)}, [dropped])
    function, other = changed.tools
    assert other == request.tools[1]
    assert (function.name, function.description, function.opaque) == ("edit", "Edits.", False)
    (text,) = json.loads(function.input_schema)["properties"].values()
    assert text["description"].endswith("this grammar (lark):\nstart: A")
    assert changed.tool_choice == ToolChoice(mode=ToolChoice.MODE_TOOL, name="edit")
    (called,) = changed.messages[0].blocks
    assert called.tool_use == ToolUse(id="c", name="edit", input='{"input":"a \\"b\\""}')


def test_free_text_loses_nothing() -> None:
    tool = {"type": "custom", "name": "edit", "format": {"type": "text"}}
    assert not with_functions(request_of(DIALECT_RESPONSES, tool), DIALECT_OPENAI).dropped


def test_other_requests_stay_as_they_are() -> None:
    searching = GenerateRequest(dialect=DIALECT_RESPONSES)
    for fields in ({"type": "file_search"}, {"type": "mcp", "server_label": "custom"}):
        extra = opaque(DIALECT_RESPONSES, fields)
        searching.tools.append(Tool(opaque=True, extra=extra))
    assert with_functions(searching, DIALECT_OPENAI).request == searching
