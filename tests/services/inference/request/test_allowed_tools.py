import json
from typing import Any

import pytest

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_ANTHROPIC,
    DIALECT_OPENAI,
    DIALECT_RESPONSES,
    Opaque,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, ToolChoice
from services.inference.request.allowed_tools import with_allowed_tools

SEARCH = {"type": "web_search"}
OF_RESPONSES = {"type": "function", "name": "b"}
OF_CHATS = {"type": "function", "function": {"name": "b"}}


def request_of(dialect: int, choice: Any) -> GenerateRequest:
    request = GenerateRequest(dialect=dialect)
    for name in ("a", "b"):
        request.tools.add(name=name, input_schema=b"{}")
    request.tools.add(name="web_search", opaque=True, extra=opaque(dialect, SEARCH))
    custom = opaque(dialect, {"type": "custom", "name": "c"})
    request.tools.add(name="c", opaque=True, extra=custom)
    request.tool_choice.extra.CopyFrom(opaque(dialect, choice))
    return request


def opaque(dialect: int, fields: Any) -> Opaque:
    return Opaque(dialect=dialect, json=json.dumps(fields).encode())


def in_responses(*tools: Any, mode: Any = "auto") -> Any:
    return {"type": "allowed_tools", "mode": mode, "tools": [*tools]}


def in_chats(*tools: Any, mode: Any = "auto") -> Any:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [*tools]}}


@pytest.mark.parametrize(
    ("dialect", "choice", "names", "mode"),
    [
        (DIALECT_RESPONSES, in_responses(OF_RESPONSES), ["b"], ToolChoice.MODE_AUTO),
        (
            DIALECT_RESPONSES,
            in_responses(SEARCH, OF_RESPONSES, mode="required"),
            ["b", "web_search"],
            ToolChoice.MODE_ANY,
        ),
        (
            DIALECT_RESPONSES,
            in_responses({"type": "custom", "name": "c"}),
            ["c"],
            ToolChoice.MODE_AUTO,
        ),
        (DIALECT_OPENAI, in_chats(OF_CHATS, mode="required"), ["b"], ToolChoice.MODE_ANY),
        (
            DIALECT_OPENAI,
            in_chats({"type": "custom", "custom": {"name": "c"}}),
            ["c"],
            ToolChoice.MODE_AUTO,
        ),
        (DIALECT_RESPONSES, in_responses(), ["a", "b", "web_search", "c"], ToolChoice.MODE_NONE),
    ],
)
def test_other_dialects_get_the_allowed_tools(
    dialect: int, choice: Any, names: list[str], mode: int
) -> None:
    request = request_of(dialect, choice)
    request.tool_choice.disable_parallel_tool_use = True
    before = request.SerializeToString(deterministic=True)
    changed = with_allowed_tools(request, DIALECT_ANTHROPIC)
    assert [tool.name for tool in changed.tools] == names
    assert changed.tool_choice == ToolChoice(mode=mode, disable_parallel_tool_use=True)
    assert request.SerializeToString(deterministic=True) == before


def test_the_callers_own_dialect_gets_all_tools() -> None:
    request = request_of(DIALECT_RESPONSES, in_responses(OF_RESPONSES))
    assert with_allowed_tools(request, DIALECT_RESPONSES) is request


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "hosted", "name": "allowed_tools"},
        ["allowed_tools"],
        in_responses(mode=["auto"]),
        {"type": "allowed_tools", "mode": "auto", "tools": {}},
        {"type": "allowed_tools", "allowed_tools": "b"},
    ],
)
def test_other_choices_stay_as_they_are(choice: Any) -> None:
    request = request_of(DIALECT_RESPONSES, choice)
    assert with_allowed_tools(request, DIALECT_ANTHROPIC) is request


def test_types_that_are_none_allow_nothing() -> None:
    request = request_of(DIALECT_RESPONSES, in_responses(1, {"type": []}, {"type": "function"}))
    changed = with_allowed_tools(request, DIALECT_ANTHROPIC)
    assert changed.tool_choice.mode == ToolChoice.MODE_NONE
