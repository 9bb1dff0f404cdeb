from dataclasses import replace
from typing import Any

import pytest

from gateway.inference.v1.inference_pb2 import (
    GenerateRequest,
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from tests.grid import each_row
from tests.services.inference.providers.caller_paths import dropped_of
from tests.services.inference.providers.openai_calls import (
    ANTHROPIC,
    ASSISTANT,
    USER,
    body_of,
    call_of,
    opaque,
    refusal_of,
    says,
)
from tests.work import lines_run

TOOL = Tool(name="f", input_schema=b'{"type":"object"}')
ENABLED = ThinkingConfig.MODE_ENABLED


def test_a_plain_request_says_what_is_needed_and_no_more() -> None:
    assert body_of(call_of()) == {
        "model": "gpt-1",
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_nothing_is_changed_in_the_request() -> None:
    call = call_of(tools=[TOOL], stop_sequences=["x"], extra=opaque({"logit_bias": {}}))
    before = GenerateRequest.FromString(call.request.SerializeToString())
    body_of(call)
    assert call.request == before


def test_a_stream_asks_for_usage_whatever_else_its_options_are() -> None:
    assert body_of(call_of(stream=True))["stream_options"] == {"include_usage": True}
    options = {"include_usage": False, "include_obfuscation": False}
    call = call_of(stream=True, extra=opaque({"stream_options": options}))
    assert body_of(call)["stream_options"] == {"include_usage": True, "include_obfuscation": False}


def test_a_whole_answer_is_asked_for_without_options_of_streams() -> None:
    call = call_of(extra=opaque({"stream_options": {}, "stream": True}))
    assert {"stream", "stream_options"}.isdisjoint(body_of(call))


def test_sampling_goes_as_it_was_given() -> None:
    fields: dict[str, Any] = {
        "temperature": 1.7,
        "top_p": 0.3,
        "seed": -5,
        "presence_penalty": -2,
        "frequency_penalty": 0,
        "logprobs": True,
        "top_logprobs": 3,
    }
    body = body_of(call_of(**fields, n=2, end_user="u", service_tier="flex", stop_sequences=["a"]))
    assert {name: body[name] for name in fields} == fields
    assert (body["n"], body["user"], body["service_tier"], body["stop"]) == (2, "u", "flex", ["a"])


def test_the_limit_on_tokens_has_its_new_name_at_openai_alone() -> None:
    call = call_of(max_tokens=7)
    assert body_of(call)["max_completion_tokens"] == 7
    assert "max_tokens" not in body_of(call)
    assert body_of(call, newest=False)["max_tokens"] == 7
    assert "max_completion_tokens" not in body_of(call, newest=False)


def test_top_k_is_dropped_for_openai_alone() -> None:
    call = call_of(top_k=5)
    assert "top_k" not in body_of(call)
    assert dropped_of(call) == ["top_k"]
    call = call_of(top_k=5)
    assert body_of(call, newest=False, known=False)["top_k"] == 5
    assert dropped_of(call) == []


def test_dropped_anthropic_fields_keep_their_own_names() -> None:
    call = call_of(dialect=ANTHROPIC, service_tier="auto", betas=["b"], end_user="u")
    assert body_of(call)["user"] == "u"
    assert dropped_of(call) == ["service_tier", "anthropic-beta"]


@each_row(
    ("thinking", "effort"),
    [
        (ThinkingConfig(mode=ENABLED, budget_tokens=1024), "low"),
        (ThinkingConfig(mode=ENABLED, budget_tokens=1025), "low"),
        (ThinkingConfig(mode=ENABLED, budget_tokens=2048), "low"),
        (ThinkingConfig(mode=ENABLED, budget_tokens=8192), "medium"),
        (ThinkingConfig(mode=ENABLED, budget_tokens=8193), "high"),
        (ThinkingConfig(mode=ENABLED, budget_tokens=99999), "high"),
        (ThinkingConfig(mode=ENABLED, budget_tokens=99999, effort="low"), "low"),
        (ThinkingConfig(effort="none"), "none"),
        (ThinkingConfig(effort="xhigh"), "xhigh"),
        (ThinkingConfig(mode=ThinkingConfig.MODE_ADAPTIVE), None),
        (ThinkingConfig(mode=ThinkingConfig.MODE_DISABLED), None),
    ],
)
def test_thinking_becomes_the_smallest_effort_that_holds_it(
    thinking: ThinkingConfig, effort: str | None
) -> None:
    assert body_of(call_of(thinking=thinking)).get("reasoning_effort") == effort


def test_a_mode_of_thinking_without_a_name_is_left_to_the_model() -> None:
    thinking = ThinkingConfig(mode=ThinkingConfig.MODE_OPAQUE, extra=opaque({}, ANTHROPIC))
    call = call_of(thinking=thinking, dialect=ANTHROPIC)
    assert "reasoning_effort" not in body_of(call)
    assert dropped_of(call) == ["thinking"]


def test_tools_become_functions() -> None:
    described = Tool(name="g", description="does g", strict=True, input_schema=b'{"a": 1.0}')
    body = body_of(call_of(tools=[described, Tool(name="h")]))
    function = {"name": "g", "description": "does g", "strict": True, "parameters": {"a": 1.0}}
    bare = {"name": "h", "parameters": {"type": "object", "properties": {}}}
    assert body["tools"] == [
        {"type": "function", "function": function},
        {"type": "function", "function": bare},
    ]


def test_a_schema_goes_byte_for_byte_and_must_be_an_object() -> None:
    call = call_of(tools=[Tool(name="f", input_schema=b"[]")])
    assert refusal_of(call) == ("INVALID_REQUEST", "tools[0].function.parameters")
    call = call_of(tools=[Tool(name="f", input_schema=b'{"a":1}, "x": {}')])
    assert refusal_of(call) == ("INVALID_REQUEST", "tools[0].function.parameters")


def test_only_same_dialect_builtin_tools_pass() -> None:
    custom = {"type": "custom", "custom": {"name": "c"}}
    tool = Tool(name="c", opaque=True, extra=opaque(custom))
    assert body_of(call_of(tools=[tool]))["tools"] == [custom]
    tool = Tool(name="c", opaque=True, extra=opaque({"type": "bash_20250124"}, ANTHROPIC))
    assert refusal_of(call_of(tools=[TOOL, tool], dialect=ANTHROPIC)) == ("UNSUPPORTED", "tools[1]")


def test_extra_tool_fields_pass_or_are_reported_as_dropped() -> None:
    tool = Tool(name="f", extra=opaque({"x": 1, "function": {"y": 2, "name": "evil"}}))
    [written] = body_of(call_of(tools=[tool]), known=False)["tools"]
    assert (written["x"], written["function"]["y"], written["function"]["name"]) == (1, 2, "f")
    tool = Tool(name="f", cache_control=b"{}", extra=opaque({"defer_loading": True}, ANTHROPIC))
    call = call_of(tools=[tool, tool], dialect=ANTHROPIC)
    body_of(call)
    assert dropped_of(call) == ["tools[].cache_control", "tools[].defer_loading"]


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        (ToolChoice(mode=ToolChoice.MODE_AUTO), "auto"),
        (ToolChoice(mode=ToolChoice.MODE_ANY), "required"),
        (ToolChoice(mode=ToolChoice.MODE_NONE), "none"),
        (
            ToolChoice(mode=ToolChoice.MODE_TOOL, name="f"),
            {"type": "function", "function": {"name": "f"}},
        ),
        (
            ToolChoice(extra=opaque({"type": "custom", "custom": {"name": "f"}})),
            {"type": "custom", "custom": {"name": "f"}},
        ),
    ],
)
def test_every_choice_of_tools_has_its_word(choice: ToolChoice, written: object) -> None:
    assert body_of(call_of(tools=[TOOL], tool_choice=choice))["tool_choice"] == written


def test_a_choice_of_another_dialect_without_a_name_is_refused() -> None:
    choice = ToolChoice(extra=opaque({"type": "new"}, ANTHROPIC))
    call = call_of(tools=[TOOL], tool_choice=choice, dialect=ANTHROPIC)
    assert refusal_of(call) == ("UNSUPPORTED", "tool_choice")


@pytest.mark.parametrize("disabled", [True, False])
def test_parallel_calls_can_be_turned_off(disabled: bool) -> None:
    choice = ToolChoice(mode=ToolChoice.MODE_AUTO, disable_parallel_tool_use=disabled)
    body = body_of(call_of(tools=[TOOL], tool_choice=choice))
    assert body["parallel_tool_calls"] is not disabled


def test_without_tools_no_choice_among_them_is_sent() -> None:
    choice = ToolChoice(mode=ToolChoice.MODE_NONE, disable_parallel_tool_use=True)
    assert {"tool_choice", "parallel_tool_calls"}.isdisjoint(body_of(call_of(tool_choice=choice)))


@pytest.mark.parametrize(
    ("form", "written"),
    [
        (OutputFormat(kind=OutputFormat.KIND_TEXT), {"type": "text"}),
        (OutputFormat(kind=OutputFormat.KIND_JSON_OBJECT), {"type": "json_object"}),
        (
            OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=b"{}"),
            {"type": "json_schema", "json_schema": {"name": "answer", "schema": {}}},
        ),
        (
            OutputFormat(
                kind=OutputFormat.KIND_JSON_SCHEMA,
                schema=b'{"type":"object"}',
                name="n",
                description="d",
                strict=True,
            ),
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "n",
                    "schema": {"type": "object"},
                    "description": "d",
                    "strict": True,
                },
            },
        ),
    ],
)
def test_every_form_of_answer_has_its_word(form: OutputFormat, written: object) -> None:
    assert body_of(call_of(output_format=form))["response_format"] == written


def test_same_dialect_unknown_fields_override_nothing() -> None:
    extra = {"verbosity": "low", "model": "evil", "max_completion_tokens": 9, "new": None}
    body = body_of(call_of(max_tokens=7, extra=opaque(extra)))
    assert (body["verbosity"], body["model"], body["max_completion_tokens"]) == ("low", "gpt-1", 7)
    assert "new" not in body


def test_extension_fields_of_the_gateway_never_reach_a_provider() -> None:
    extra = {"multimodal": {}, "fallback": "auto", "memory_id": "m", "memory_config": {}}
    assert body_of(call_of(extra=opaque(extra))) == body_of(call_of())


@pytest.mark.parametrize(
    "extra", [{"prompt": {"id": "p"}}, {"previous_response_id": "r"}, {"conversation": "c"}]
)
def test_what_is_kept_at_the_provider_may_not_be_named(extra: dict[str, Any]) -> None:
    call = call_of(extra=opaque(extra))
    assert refusal_of(call) == ("INVALID_REQUEST", next(iter(extra)))
    assert extra.items() <= body_of(call, pass_stateful=True, known=False).items()


@pytest.mark.parametrize("store", [True, False])
def test_nothing_is_stored_at_the_provider(store: bool) -> None:
    call = call_of(extra=opaque({"store": store}))
    assert body_of(call)["store"] is False
    assert dropped_of(call) == ["store"] * store
    assert body_of(call, pass_stateful=True)["store"] is store


def test_foreign_unknown_fields_are_dropped_and_reported() -> None:
    given = {"context_management": {}, "mcp_servers": [], "diagnostics": {"x": 1}, "new": None}
    call = call_of(extra=opaque(given, ANTHROPIC), dialect=ANTHROPIC)
    assert body_of(call) == body_of(call_of())
    assert dropped_of(call) == ["context_management", "mcp_servers", "diagnostics"]


def test_foreign_fields_that_change_the_answer_are_refused() -> None:
    call = call_of(extra=opaque({"mcp_servers": [{"url": "x"}]}, ANTHROPIC), dialect=ANTHROPIC)
    assert refusal_of(call) == ("UNSUPPORTED", "mcp_servers")


def test_ten_times_the_messages_are_ten_times_the_work() -> None:
    def work(count: int) -> int:
        call = call_of(*[says((USER, ASSISTANT)[i % 2], "hello") for i in range(count)])
        call.request.messages.add(role=USER).blocks.add(text="end")
        return lines_run(lambda: body_of(call, known=False))

    assert work(2_000) < 10.5 * work(200)


def test_what_a_model_has_refused_is_left_out_and_reported() -> None:
    call = call_of(temperature=0.5, seed=7)
    call.refused_fields = frozenset({"temperature", "top_p"})
    body = body_of(call)
    assert "temperature" not in body
    assert body["seed"] == 7
    assert dropped_of(call) == ["temperature"]


@pytest.mark.parametrize(
    ("newest", "refused", "name"),
    [
        (False, "max_tokens", "max_completion_tokens"),
        (True, "max_completion_tokens", "max_tokens"),
    ],
)
def test_a_limit_that_is_refused_goes_by_its_other_name(newest, refused, name) -> None:
    call = call_of(max_tokens=50)
    call.refused_fields = frozenset({refused})
    body = body_of(call, newest=newest)
    assert refused not in body
    assert body[name] == 50
    assert dropped_of(call) == []


@pytest.mark.parametrize(
    ("effort", "efforts", "sent"),
    [
        ("max", (), "high"),
        ("xhigh", ("low", "medium", "high"), "high"),
        ("minimal", ("low", "medium", "high"), "low"),
        ("max", ("low", "high", "xhigh"), "xhigh"),
    ],
)
def test_an_effort_of_another_dialect_is_the_models_nearest(effort, efforts, sent) -> None:
    call = call_of(thinking=ThinkingConfig(effort=effort), dialect=ANTHROPIC)
    call.target = replace(call.target, efforts=efforts)
    assert body_of(call)["reasoning_effort"] == sent


def test_an_effort_of_a_chat_goes_as_it_is() -> None:
    assert body_of(call_of(thinking=ThinkingConfig(effort="xhigh")))["reasoning_effort"] == "xhigh"


def test_thinking_is_turned_off_where_a_model_allows_it() -> None:
    disabled = ThinkingConfig(mode=ThinkingConfig.MODE_DISABLED)
    call = call_of(thinking=disabled, dialect=ANTHROPIC)
    assert "reasoning_effort" not in body_of(call)
    call.target = replace(call.target, efforts=("none", "low", "medium", "high"))
    assert body_of(call)["reasoning_effort"] == "none"
    call = call_of(thinking=ThinkingConfig(effort="none"), dialect=ANTHROPIC)
    assert "reasoning_effort" not in body_of(call)
    call.target = replace(call.target, thinks=None)
    body_of(call)
    assert dropped_of(call) == ["thinking"]
    told = ThinkingConfig(mode=ThinkingConfig.MODE_DISABLED, effort="high")
    call = call_of(thinking=told, dialect=ANTHROPIC)
    call.target = replace(call.target, efforts=("none", "low", "medium", "high"))
    assert body_of(call)["reasoning_effort"] == "none"
