"""Chat completions read lazily, and rules of requests and steps with the words of refusals."""

from typing import Any

import pytest

from facade.dialects.openai import parse_chat
from gateway.inference.v1.inference_pb2 import GenerateRequest
from tests.facade.dialects.openai.bodies import body, json_of, parse, refused, request
from tests.facade.dialects.openai.test_steps import chain
from tests.grid import each_row
from tests.lazy_requests import lazy_of

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
STEP = "fallback_config.steps[1].parameters"


@each_row(
    ("fields", "has_whole_body"),
    [
        ({}, True),
        ({"temperature": 0.5, "n": 2, "max_tokens": 7}, True),
        ({"max_completion_tokens": 7}, True),
        ({"tools": [TOOL], "tool_choice": "auto"}, True),
        ({"stream": True, "stream_options": {"include_usage": True}}, True),
        ({"tools": [TOOL], "tool_choice": "required"}, False),
        ({"max_tokens": 7, "max_completion_tokens": 7}, False),
        ({"verbosity": "low", "n": 2}, False),
    ],
)
def test_a_lazy_request_is_completed_to_the_same(
    fields: dict[str, Any], has_whole_body: bool
) -> None:
    eager, parsed = parse(**fields), parse_chat(body(**fields), lazily=True)
    lazy = lazy_of(parsed)
    assert lazy is not None
    assert lazy.has_whole_body == has_whole_body
    assert not lazy.request.messages
    assert not lazy.request.tools
    for name in ("model", "n", "max_tokens"):
        assert getattr(lazy.request, name) == getattr(eager.request, name)
    assert (parsed.stream, parsed.include_usage) == (eager.stream, eager.include_usage)
    assert lazy.complete() == eager.request


@pytest.mark.parametrize(
    "fields",
    [
        {"web_search_options": {}},
        {"memory_id": "m"},
        {"tools": [TOOL, {"type": "custom", "custom": {"name": "g"}}]},
    ],
)
def test_what_must_be_translated_is_not_lazy(fields: dict[str, Any]) -> None:
    assert parse_chat(body(**fields), lazily=True) == parse(**fields)
    assert lazy_of(parse(**fields)) is None


def test_nothing_is_lazy_unless_it_is_asked_for() -> None:
    assert lazy_of(parse()) is None


def test_the_options_of_web_search_go_on_as_they_are() -> None:
    options = {"search_context_size": "low"}
    parsed = request(web_search_options=options)
    assert json_of(parsed.extra) == {"web_search_options": options}
    assert parsed.HasField("web_search")


@each_row(
    ("fields", "says"),
    [
        ({"stream_options": {}}, "stream_options: allowed only if stream is true"),
        (
            {"use_built_in_tools": True},
            "use_built_in_tools: not supported on this endpoint; use /v1/messages",
        ),
        (
            {"thinking_block_strategy": "discard"},
            "thinking_block_strategy: not supported on this endpoint; use /v1/messages",
        ),
        (
            {"max_tokens": 1, "max_completion_tokens": 2},
            "max_completion_tokens: must equal max_tokens if both are given",
        ),
        (
            {"response_format": {"type": "json_schema"}},
            "response_format.json_schema: is required if type is json_schema",
        ),
        (
            chain({}, {"stream": True}),
            f"{STEP}.stream: cannot be overridden in a fallback step",
        ),
        (chain({}, {"stop": []}), f"{STEP}.stop: must not be empty in a fallback step"),
        (chain({}, {"tools": []}), f"{STEP}.tools: must not be empty in a fallback step"),
        (
            chain({}, {"functions": []}),
            f"{STEP}.functions: cannot be overridden in a fallback step",
        ),
    ],
)
def test_a_refusal_says_what_is_taken(fields: dict[str, Any], says: str) -> None:
    assert refused(**fields).message == says


def test_a_null_in_a_step_takes_nothing_away() -> None:
    (only,) = request(**chain({"stop": None, "user": None}), stop="a").fallback_config.steps
    assert only.parameters == GenerateRequest()


def test_other_fields_of_a_step_may_be_empty() -> None:
    (only,) = request(**chain({"mine": [], "user": ""}), user="a").fallback_config.steps
    assert json_of(only.parameters.extra) == {"mine": []}


def test_tools_of_the_request_may_be_chosen_by_a_step() -> None:
    choice = {"type": "function", "function": {"name": "f"}}
    (only,) = request(**chain({"tool_choice": choice}), tools=[TOOL]).fallback_config.steps
    assert only.parameters.tool_choice.name == "f"
    assert not only.parameters.tools
    assert not refused(**chain({"tool_choice": choice})).param.startswith("tool_choice")
