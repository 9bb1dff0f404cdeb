"""How much a model is to think in requests to Anthropic."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.conversation.v1.conversation_pb2 import Block, Message, Thinking, ToolResult, ToolUse
from gateway.inference.v1.inference_pb2 import (
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from services.inference.providers.base import Call
from tests.services.inference.providers.anthropic_calls import (
    ANTHROPIC,
    ASSISTANT,
    NONE,
    USER,
    body_of,
    call_of,
    opaque,
    says,
)
from tests.services.inference.providers.caller_paths import dropped_of

ENABLED = ThinkingConfig.MODE_ENABLED

TOOL = Tool(name="f", input_schema=b'{"type":"object"}')

SIGNED = Block(thinking=Thinking(text="x", signature="AAA="))


def thinking(effort: str = "", **fields: Any) -> ThinkingConfig:
    return ThinkingConfig(effort=effort, **fields)


def tool_loop(*begin: Block) -> list[Message]:
    return [
        says(USER, "a"),
        says(ASSISTANT, *begin, Block(tool_use=ToolUse(id="t", name="f"))),
        says(USER, Block(tool_result=ToolResult(tool_use_id="t"))),
    ]


def adaptive_call(*messages: Message, **fields: Any) -> Call:
    call = call_of(*messages, **fields)
    efforts, refuses = ("low", "medium", "high"), frozenset({"prefill"})
    target = replace(call.target, adaptive=True, refuses=refuses, efforts=efforts)
    return replace(call, target=target, refused_fields=refuses)


@pytest.mark.parametrize(
    ("effort", "budget"),
    [
        ("minimal", 1024),
        ("low", 2048),
        ("medium", 8192),
        *((effort, 24576) for effort in ("high", "xhigh", "max")),
    ],
)
def test_an_effort_of_chat_becomes_a_budget(effort: str, budget: int) -> None:
    body = body_of(call_of(thinking=thinking(effort), max_tokens=30_000))
    assert body["thinking"] == {"type": "enabled", "budget_tokens": budget}
    assert body["max_tokens"] == 30_000
    assert "output_config" not in body


@pytest.mark.parametrize(
    ("fields", "budget", "max_tokens"),
    [
        ({"max_tokens": 1536}, 1024, 1536),
        ({"max_tokens": 4000}, 3000, 4000),
        ({"limit": 4000}, 3000, 4000),
        ({}, 8192, 8192 + 4096),
    ],
)
def test_a_thinking_budget_stays_below_max_tokens(
    fields: dict[str, int], budget: int, max_tokens: int
) -> None:
    body = body_of(call_of(thinking=thinking("medium"), **fields))
    assert body["thinking"]["budget_tokens"] == budget
    assert body["max_tokens"] == max_tokens


@pytest.mark.parametrize(
    ("messages", "fields"),
    [
        ([], {"max_tokens": 1024}),
        ([], {"tools": [TOOL], "tool_choice": ToolChoice(mode=ToolChoice.MODE_ANY)}),
        ([says(USER, "a"), says(ASSISTANT, "prefill")], {}),
        ([says(USER, "a"), says(ASSISTANT, SIGNED, "prefill")], {}),
        (tool_loop(), {}),
        ([*tool_loop(Block(text="let me see")), says(USER, "and?")], {}),
    ],
    ids=[
        "no room",
        "forced tool",
        "prefill",
        "prefill after thinking",
        "tool loop",
        "tool loop and text",
    ],
)
def test_effort_is_dropped_where_thinking_cannot_begin(
    messages: list[Message], fields: dict[str, Any]
) -> None:
    call = call_of(*messages, thinking=thinking("high"), **fields)
    assert "thinking" not in body_of(call)
    assert dropped_of(call) == ["reasoning_effort"]


@pytest.mark.parametrize(
    "messages",
    [
        tool_loop(SIGNED),
        [says(USER, "a"), says(ASSISTANT, SIGNED), *tool_loop()[1:]],
        tool_loop(Block(redacted_thinking="AAA=")),
        [*tool_loop(), says(ASSISTANT, "done"), says(USER, "thanks")],
    ],
    ids=["signed", "signed in a message before", "redacted", "over"],
)
def test_thinking_turns_and_finished_turns_can_think(messages: list[Message]) -> None:
    call = call_of(*messages, thinking=thinking("high"))
    assert body_of(call)["thinking"]["type"] == "enabled"


def test_effort_none_turns_thinking_off() -> None:
    body = body_of(call_of(thinking=thinking("none"), temperature=0.5))
    assert body["thinking"] == {"type": "disabled"}
    assert body["temperature"] == 0.5


def test_an_effort_of_another_providers_is_dropped() -> None:
    call = call_of(thinking=thinking("default"))
    assert "thinking" not in body_of(call)
    assert dropped_of(call) == ["reasoning_effort"]


def test_an_effort_of_the_anthropic_dialect_is_passed_on() -> None:
    config = thinking("max", mode=ThinkingConfig.MODE_ADAPTIVE)
    body = body_of(call_of(thinking=config, dialect=ANTHROPIC))
    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": "max"}
    alone = body_of(call_of(thinking=thinking("low"), dialect=ANTHROPIC))
    assert alone["output_config"] == {"effort": "low"}
    assert "thinking" not in alone


@pytest.mark.parametrize("dialect", [ANTHROPIC, NONE])
def test_a_given_budget_is_passed_on(dialect: int) -> None:
    config = ThinkingConfig(mode=ENABLED, budget_tokens=2000)
    body = body_of(call_of(thinking=config, max_tokens=3000, dialect=dialect))
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}


def test_unknown_thinking_fields_pass_in_the_same_dialect() -> None:
    shown = ThinkingConfig(mode=ThinkingConfig.MODE_ADAPTIVE, extra=opaque({"display": "omitted"}))
    body = body_of(call_of(thinking=shown, dialect=ANTHROPIC))
    assert body["thinking"] == {"display": "omitted", "type": "adaptive"}
    other = ThinkingConfig(mode=ThinkingConfig.MODE_OPAQUE, extra=opaque({"type": "between_tools"}))
    assert body_of(call_of(thinking=other, dialect=ANTHROPIC))["thinking"] == {
        "type": "between_tools"
    }


def test_sampling_barred_by_thinking_is_dropped_and_reported() -> None:
    call = call_of(thinking=thinking("low"), temperature=0.5, top_p=0.5, top_k=5)
    assert not {"temperature", "top_p", "top_k"} & body_of(call).keys()
    assert dropped_of(call) == ["temperature", "top_p", "top_k"]


def test_sampling_that_thinking_allows_stays() -> None:
    call = call_of(thinking=thinking("low"), temperature=1, top_p=0.97)
    body = body_of(call)
    assert (body["temperature"], body["top_p"], dropped_of(call)) == (1, 0.97, [])


def test_same_dialect_sampling_passes_beside_thinking() -> None:
    config = ThinkingConfig(mode=ENABLED, budget_tokens=1024)
    call = call_of(thinking=config, temperature=0.5, max_tokens=2000, dialect=ANTHROPIC)
    assert body_of(call)["temperature"] == 0.5


@pytest.mark.parametrize(
    ("effort", "sent"),
    [("minimal", "low"), ("low", "low"), ("high", "high"), ("xhigh", "high"), ("max", "high")],
)
def test_a_model_that_paces_itself_is_asked_by_an_effort(effort: str, sent: str) -> None:
    body = body_of(adaptive_call(thinking=thinking(effort), max_tokens=1000, temperature=0.2))
    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": sent}
    assert "temperature" not in body


@pytest.mark.parametrize("mode", [ToolChoice.MODE_ANY, ToolChoice.MODE_TOOL])
def test_a_forced_call_takes_precedence_over_an_effort(mode: ToolChoice.Mode.ValueType) -> None:
    tools = [Tool(name="f", input_schema=b'{"type":"object"}')]
    choice = ToolChoice(mode=mode, name="f" if mode == ToolChoice.MODE_TOOL else "")
    call = adaptive_call(thinking=thinking("high"), tools=tools, tool_choice=choice)
    body = body_of(call)
    assert "thinking" not in body and body["tool_choice"]["type"] in ("any", "tool")
    assert dropped_of(call) == ["reasoning_effort"]
