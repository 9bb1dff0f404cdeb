"""Tools of a chat and the choice among them."""

from typing import Any

import orjson
import pytest

from gateway.inference.v1 import inference_pb2 as inference
from gateway.inference.v1.inference_pb2 import ToolChoice
from tests.facade.dialects.openai.bodies import json_of, refused, request
from tests.grid import each_row

SCHEMA = {"type": "object", "properties": {"z": {}, "a": {"type": "string"}}}


def function(name: str = "f", **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **fields}}


CUSTOM = {"type": "custom", "custom": {"name": "k", "format": {"type": "text"}}}


def test_a_function_keeps_its_definition() -> None:
    (tool,) = request(
        tools=[function("get-it_1", description="d", parameters=SCHEMA, strict=False)]
    ).tools
    assert tool == inference.Tool(
        name="get-it_1", description="d", input_schema=orjson.dumps(SCHEMA), strict=False
    )


def test_the_least_function_is_a_name() -> None:
    least = function(description=None, parameters=None, strict=None)
    assert request(tools=[least]).tools == [inference.Tool(name="f")]


def test_what_has_no_name_stays_at_its_place_in_the_tool() -> None:
    (tool,) = request(tools=[{**function(returns=1), "cache": 2}]).tools
    assert json_of(tool.extra) == {"cache": 2, "function": {"returns": 1}}
    assert not tool.opaque


def test_tools_of_other_types_stay_as_they_are() -> None:
    search = {"type": "web_search", "size": 5}
    custom, other, again = request(tools=[CUSTOM, search, search]).tools
    assert (custom.name, custom.opaque, json_of(custom.extra)) == ("k", True, CUSTOM)
    assert (other.name, other.opaque, json_of(other.extra)) == ("", True, search)
    assert other == again


@each_row(
    ("choice", "becomes"),
    [
        ("auto", ToolChoice(mode=ToolChoice.MODE_AUTO)),
        ("required", ToolChoice(mode=ToolChoice.MODE_ANY)),
        ("none", ToolChoice(mode=ToolChoice.MODE_NONE)),
        (function(), ToolChoice(mode=ToolChoice.MODE_TOOL, name="f")),
    ],
)
@each_row("parallel", [None, True, False])
def test_a_choice_has_its_mode(choice: object, becomes: ToolChoice, parallel: bool | None) -> None:
    if parallel is not None:
        becomes = ToolChoice(
            mode=becomes.mode, name=becomes.name, disable_parallel_tool_use=not parallel
        )
    changed = request(tools=[function()], tool_choice=choice, parallel_tool_calls=parallel)
    assert changed.tool_choice == becomes


def test_parallel_calls_are_limited_with_automatic_choice() -> None:
    assert request(tools=[function()], parallel_tool_calls=False).tool_choice == ToolChoice(
        mode=ToolChoice.MODE_AUTO, disable_parallel_tool_use=True
    )


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "custom", "custom": {"name": "k"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [function()]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "x"}]}},
        {"type": "web_search", "effort": 3},
    ],
)
def test_a_choice_that_only_this_dialect_knows_stays_as_it_is(choice: dict[str, Any]) -> None:
    changed = request(tools=[function(), CUSTOM], tool_choice=choice, parallel_tool_calls=False)
    assert changed.tool_choice.mode == ToolChoice.MODE_UNSPECIFIED
    assert changed.tool_choice.disable_parallel_tool_use
    assert json_of(changed.tool_choice.extra) == choice


def test_a_named_choice_keeps_what_else_it_says() -> None:
    choice = {"type": "function", "function": {"name": "f", "mine": 1}, "yours": 2}
    chosen = request(tools=[function()], tool_choice=choice).tool_choice
    assert (chosen.mode, chosen.name) == (ToolChoice.MODE_TOOL, "f")
    assert json_of(chosen.extra) == choice


@pytest.mark.parametrize("choice", ["auto", "none", None])
def test_without_tools_there_is_nothing_to_choose(choice: str | None) -> None:
    changed = request(tools=[], tool_choice=choice, parallel_tool_calls=True)
    assert not changed.HasField("tool_choice")


def allowed(**fields: Any) -> dict[str, Any]:
    return {"tool_choice": {"type": "allowed_tools", "allowed_tools": fields}}


@each_row(
    ("fields", "param"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": ["f"]}, "tools[0]"),
        ({"tools": [{}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "custom", "function": {"name": "f"}}]}, "tools[0].custom"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tools": [function(), function("")]}, "tools[1].function.name"),
        ({"tools": [function("a b")]}, "tools[0].function.name"),
        ({"tools": [function("é")]}, "tools[0].function.name"),
        ({"tools": [function("f\n")]}, "tools[0].function.name"),
        ({"tools": [function("f" * 129)]}, "tools[0].function.name"),
        ({"tools": [{"type": "custom", "custom": {"name": "a b"}}]}, "tools[0].custom.name"),
        ({"tools": [function(), CUSTOM, function()]}, "tools[2].function.name"),
        ({"tools": [function("k"), CUSTOM]}, "tools[1].custom.name"),
        ({"tools": [function(parameters="{}")]}, "tools[0].function.parameters"),
        ({"tools": [function(parameters=[])]}, "tools[0].function.parameters"),
        ({"tools": [function(strict="yes")]}, "tools[0].function.strict"),
        ({"tools": [function(description=5)]}, "tools[0].function.description"),
        ({"tool_choice": "required", "tools": ...}, "tool_choice"),
        ({"tool_choice": "required", "tools": []}, "tool_choice"),
        ({"tool_choice": function(), "tools": None}, "tool_choice"),
        ({"tool_choice": "any"}, "tool_choice"),
        ({"tool_choice": 5}, "tool_choice"),
        ({"tool_choice": {}}, "tool_choice.type"),
        ({"tool_choice": {"type": ""}}, "tool_choice.type"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.function"),
        ({"tool_choice": {"type": "function", "function": {}}}, "tool_choice.function.name"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice.function"),
        ({"tool_choice": function("g")}, "tool_choice.function.name"),
        (
            {"tool_choice": {"type": "custom", "custom": {"name": "g"}}},
            "tool_choice.custom.name",
        ),
        (allowed(mode="any", tools=[]), "tool_choice.allowed_tools.mode"),
        (allowed(mode="auto", tools="f"), "tool_choice.allowed_tools.tools"),
        (
            allowed(mode="auto", tools=[function(), function("g")]),
            "tool_choice.allowed_tools.tools[1].function.name",
        ),
        (
            allowed(mode="auto", tools=[{"type": "custom"}]),
            "tool_choice.allowed_tools.tools[0].custom.name",
        ),
    ],
)
def test_tools_and_choices_that_break_a_rule_are_named(fields: dict[str, Any], param: str) -> None:
    assert refused(**{"tools": [function()]} | fields).param == param


def test_a_name_may_have_128_characters() -> None:
    assert request(tools=[function("f" * 128)]).tools[0].name == "f" * 128
