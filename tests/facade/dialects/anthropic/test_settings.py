"""Everything of a request but its conversation: tools, sampling, thinking, form."""

import orjson
import pytest

from gateway.conversation.v1 import conversation_pb2 as c
from gateway.inference.v1 import inference_pb2 as pb
from tests.facade.dialects.anthropic.bodies import parsed, refusal

TOOL = {"name": "look", "input_schema": {"type": "object"}}


def test_tools_keep_schema_and_fields_of_their_own():
    request = parsed(
        tools=[
            {
                "type": "custom",
                "name": "look",
                "description": "Looks.",
                "input_schema": {"type": "object", "properties": {"b": {}, "a": {}}},
                "strict": False,
                "cache_control": {"type": "ephemeral"},
                "defer_loading": True,
            },
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        ]
    )
    assert list(request.tools) == [
        pb.Tool(
            name="look",
            description="Looks.",
            input_schema=b'{"type":"object","properties":{"b":{},"a":{}}}',
            strict=False,
            cache_control=b'{"type":"ephemeral"}',
            extra=c.Opaque(dialect=c.DIALECT_ANTHROPIC, json=b'{"defer_loading":true}'),
        ),
        pb.Tool(
            name="web_search",
            opaque=True,
            extra=c.Opaque(
                dialect=c.DIALECT_ANTHROPIC,
                json=b'{"type":"web_search_20250305","name":"web_search","max_uses":3}',
            ),
            web=pb.WebTool(kind=pb.WebTool.KIND_SEARCH, max_uses=3),
        ),
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", pb.ToolChoice(mode=pb.ToolChoice.MODE_AUTO)),
        ("any", pb.ToolChoice(mode=pb.ToolChoice.MODE_ANY)),
        ("none", pb.ToolChoice(mode=pb.ToolChoice.MODE_NONE)),
        ({"type": "none"}, pb.ToolChoice(mode=pb.ToolChoice.MODE_NONE)),
        (
            {"type": "any", "disable_parallel_tool_use": False},
            pb.ToolChoice(mode=pb.ToolChoice.MODE_ANY, disable_parallel_tool_use=False),
        ),
        (
            {"type": "tool", "name": "look", "disable_parallel_tool_use": True},
            pb.ToolChoice(
                mode=pb.ToolChoice.MODE_TOOL, name="look", disable_parallel_tool_use=True
            ),
        ),
        (
            {"type": "auto", "new": 1},
            pb.ToolChoice(
                mode=pb.ToolChoice.MODE_AUTO,
                extra=c.Opaque(dialect=c.DIALECT_ANTHROPIC, json=b'{"new":1}'),
            ),
        ),
    ],
)
def test_tool_choice_as_a_word_or_an_object(choice, expected):
    assert parsed(tools=[TOOL], tool_choice=choice).tool_choice == expected


def test_a_toolset_may_hold_the_tool_that_is_chosen():
    request = parsed(
        tools=[{"type": "computer_toolset_20260801"}],
        tool_choice={"type": "tool", "name": "computer_key"},
    )
    assert request.tool_choice.name == "computer_key"


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (
            {"type": "enabled", "budget_tokens": 4095},
            pb.ThinkingConfig(mode=pb.ThinkingConfig.MODE_ENABLED, budget_tokens=4095),
        ),
        ({"type": "disabled"}, pb.ThinkingConfig(mode=pb.ThinkingConfig.MODE_DISABLED)),
        (
            {"type": "adaptive", "display": "omitted"},
            pb.ThinkingConfig(
                mode=pb.ThinkingConfig.MODE_ADAPTIVE,
                extra=c.Opaque(dialect=c.DIALECT_ANTHROPIC, json=b'{"display":"omitted"}'),
            ),
        ),
        (
            {"type": "between_tools"},
            pb.ThinkingConfig(
                mode=pb.ThinkingConfig.MODE_OPAQUE,
                extra=c.Opaque(dialect=c.DIALECT_ANTHROPIC, json=b'{"type":"between_tools"}'),
            ),
        ),
    ],
)
def test_thinking_by_mode(thinking, expected):
    assert parsed(thinking=thinking).thinking == expected


def test_a_budget_between_tools_may_exceed_max_tokens():
    thinking = {"type": "enabled", "budget_tokens": 32_000}
    steps = [{"step_id": "a", "model": "n", "parameters": {"max_tokens": 7_000}}]
    request = parsed(
        betas=["other", "interleaved-thinking-2025-05-14"],
        max_tokens=8_000,
        thinking=thinking,
        fallback="enabled",
        fallback_config={"strategy": {"mode": "sequential"}, "steps": steps},
    )
    assert request.thinking.budget_tokens == 32_000
    assert refusal(max_tokens=8_000, thinking=thinking).param == "thinking.budget_tokens"


def test_an_unknown_tool_choice_passes_unchanged():
    choice = parsed(tools=[TOOL], tool_choice={"type": "all", "names": ["a"]}).tool_choice
    assert choice.mode == pb.ToolChoice.MODE_UNSPECIFIED
    assert orjson.loads(choice.extra.json) == {"type": "all", "names": ["a"]}


def test_effort_and_form_of_the_answer():
    request = parsed(
        output_config={
            "effort": "xhigh",
            "format": {"type": "json_schema", "schema": {"type": "object"}},
        }
    )
    assert request.thinking == pb.ThinkingConfig(effort="xhigh")
    assert request.output_format == pb.OutputFormat(
        kind=pb.OutputFormat.KIND_JSON_SCHEMA, schema=b'{"type":"object"}'
    )
    assert not request.HasField("extra")


@pytest.mark.parametrize("coding", [False, True])
def test_fields_without_a_name_here_are_kept(coding):
    fields = {"container": "c", "mcp_servers": [{"url": "u"}], "new": {"a": None, "b": 1.0}}
    request = parsed(coding=coding, **fields)
    assert request.extra.dialect == c.DIALECT_ANTHROPIC
    assert orjson.loads(request.extra.json) == fields


@pytest.mark.parametrize(
    "fields",
    [
        {"metadata": {"user_id": "u", "more": 1}},
        {"output_config": {"effort": "low", "task_budget": 5}},
        {"output_config": {"format": {"type": "json_schema", "schema": {}, "name": "n"}}},
    ],
)
def test_an_object_known_in_part_is_kept_whole(fields):
    request = parsed(**fields)
    assert request.end_user or request.thinking.effort or request.output_format.schema
    assert orjson.loads(request.extra.json) == fields
