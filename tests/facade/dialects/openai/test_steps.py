"""Parameters that a fallback step overrides in OpenAI's dialect, and refusals that name a step."""

from typing import Any

from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, ToolChoice
from tests.facade.dialects.openai.bodies import HELLO, json_of, refused, request
from tests.grid import each_row

TOOL = {"type": "function", "function": {"name": "f"}}


def chain(*parameters: Any) -> dict[str, Any]:
    """Return the fields of a request whose steps have these parameters."""
    steps = [
        {"step_id": f"s{index}", "model": "other", "parameters": given}
        for index, given in enumerate(parameters)
    ]
    return {
        "fallback": "enabled",
        "fallback_config": {"strategy": {"mode": "sequential"}, "steps": steps},
    }


def step(parameters: dict[str, Any], **outer: Any) -> GenerateRequest:
    """Return what is told of a step over a request with the fields `outer`."""
    (only,) = request(**chain(parameters), **outer).fallback_config.steps
    return only.parameters


@each_row(
    ("outer", "parameters", "told"),
    [
        ({}, {}, GenerateRequest()),
        ({"temperature": 1}, {"temperature": 0}, GenerateRequest(temperature=0)),
        ({"temperature": 1}, {"top_p": 0.5}, GenerateRequest(top_p=0.5)),
        ({"temperature": 1}, {"temperature": 1.0}, GenerateRequest()),
        ({"temperature": 1}, {"temperature": None}, GenerateRequest()),
        ({"stop": "a"}, {"stop": ["b", "c"]}, GenerateRequest(stop_sequences=["b", "c"])),
        (
            {"max_tokens": 5},
            {"max_completion_tokens": 6},
            GenerateRequest(max_tokens=6, names_max_completion_tokens=True),
        ),
        (
            {"max_completion_tokens": 5},
            {"max_tokens": 6},
            GenerateRequest(max_tokens=6, names_max_completion_tokens=False),
        ),
        ({"user": "a"}, {"user": "b"}, GenerateRequest(end_user="b")),
    ],
)
def test_a_step_holds_what_differs_from_the_request(
    outer: dict[str, Any], parameters: dict[str, Any], told: GenerateRequest
) -> None:
    assert step(parameters, **outer) == told


def test_unknown_fields_of_a_step_override_the_request_s() -> None:
    told = step({"verbosity": "high", "logit_bias": {"1": 1}}, verbosity="low", mine=True)
    assert json_of(told.extra) == {"verbosity": "high", "mine": True, "logit_bias": {"1": 1}}
    assert not step({"top_p": 1}, mine=True).HasField("extra")


def test_a_step_takes_a_form_without_a_name_away() -> None:
    told = step({"response_format": {"type": "text"}}, response_format={"type": "regex"})
    assert json_of(told.extra) == {}
    assert told.output_format.kind == OutputFormat.KIND_TEXT


def test_a_step_is_checked_together_with_the_request() -> None:
    assert step({"top_logprobs": 3}, logprobs=True).top_logprobs == 3
    assert step({"tool_choice": "required"}, tools=[TOOL], parallel_tool_calls=False) == (
        GenerateRequest(
            tool_choice=ToolChoice(mode=ToolChoice.MODE_ANY, disable_parallel_tool_use=True)
        )
    )


def test_a_step_may_have_another_conversation() -> None:
    told = step({"messages": [{"role": "user", "content": "bye"}]})
    assert [one.blocks[0].text for one in told.messages] == ["bye"]


@each_row(
    ("outer", "parameters", "field"),
    [
        ({}, {"temperature": 3}, "temperature"),
        ({}, {"temperature": "1"}, "temperature"),
        ({}, {"max_tokens": 0}, "max_tokens"),
        ({}, {"max_tokens": 1, "max_completion_tokens": 2}, "max_completion_tokens"),
        ({}, {"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL]}, {"tools": []}, "tools"),
        ({"stop": "a"}, {"stop": []}, "stop"),
        ({}, {"tools": [TOOL, TOOL]}, "tools[1].function.name"),
        ({}, {"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({}, {"functions": []}, "functions"),
        ({}, {"thinking_block_strategy": "discard"}, "thinking_block_strategy"),
        ({}, {"messages": []}, "messages"),
        ({}, {"messages": [HELLO, {"role": "user"}]}, "messages[1].content"),
        ({}, {"model": "m"}, "model"),
        ({}, {"stream": True}, "stream"),
        ({}, {"fallback": "auto"}, "fallback"),
        ({}, {"multimodal": {}}, "multimodal"),
    ],
)
def test_a_step_that_breaks_a_rule_is_named(
    outer: dict[str, Any], parameters: dict[str, Any], field: str
) -> None:
    error = refused(**chain({}, parameters), **outer)
    assert error.param == f"fallback_config.steps[1].parameters.{field}"
