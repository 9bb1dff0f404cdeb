import re
from dataclasses import replace
from typing import Any

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import Message
from gateway.inference.v1.inference_pb2 import (
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
    WebTool,
)
from services.common.errors import GatewayError
from services.inference.providers.anthropic.request import beta_header
from services.inference.providers.base import Call
from tests.grid import each_row
from tests.services.inference.providers.anthropic_calls import (
    ANTHROPIC,
    ASSISTANT,
    OPENAI,
    SYSTEM,
    USER,
    body_of,
    call_of,
    count_body_of,
    opaque,
    refusal_of,
    says,
)
from tests.services.inference.providers.caller_paths import dropped_of

ENABLED = ThinkingConfig.MODE_ENABLED
TOOL = Tool(name="f", input_schema=b'{"type":"object"}')
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def thinking(effort: str = "", **fields: Any) -> ThinkingConfig:
    return ThinkingConfig(effort=effort, **fields)


def dropped_by(*messages: Message, **fields: Any) -> list[str]:
    call = call_of(*messages, **fields)
    body_of(call)
    return dropped_of(call)


def test_a_plain_request_says_what_is_needed_and_no_more() -> None:
    assert body_of(call_of(max_tokens=7)) == {
        "model": "claude-1",
        "max_tokens": 7,
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_a_streamed_request_says_so() -> None:
    assert body_of(call_of(stream=True))["stream"] is True


@pytest.mark.parametrize(("limit", "sent"), [(0, 4096), (8192, 8192)])
def test_without_max_tokens_the_models_own_limit_holds(limit: int, sent: int) -> None:
    assert body_of(call_of(limit=limit))["max_tokens"] == sent


def test_sampling_is_passed_on() -> None:
    call = call_of(temperature=0.25, top_p=0.5, top_k=3, stop_sequences=["a", "\n b"])
    body = body_of(call)
    assert (body["temperature"], body["top_p"], body["top_k"]) == (0.25, 0.5, 3)
    assert body["stop_sequences"] == ["a", "\n b"]
    assert dropped_of(call) == []


@each_row(
    ("fields", "path"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 1}, "top_logprobs"),
        ({"temperature": 1.5}, "temperature"),
        ({"stop_sequences": ["a", "\n"]}, "stop[1]"),
        ({"tools": [TOOL, Tool(opaque=True, extra=opaque({}, OPENAI))]}, "tools[1]"),
        ({"tool_choice": ToolChoice(extra=opaque({"type": "custom"}, OPENAI))}, "tool_choice"),
        ({"extra": opaque({"audio": {"voice": "x"}}, OPENAI)}, "audio"),
        ({"extra": opaque({"modalities": ["text", "audio"]}, OPENAI)}, "modalities"),
        ({"web_search": WebTool(kind=WebTool.KIND_SEARCH)}, "web_search_options"),
        ({"extra": opaque({"previous_response_id": "r"}, OPENAI)}, "previous_response_id"),
    ],
)
def test_what_cannot_be_carried_is_refused_by_its_name_in_chat(
    fields: dict[str, Any], path: str
) -> None:
    assert refusal_of(call_of(**fields)) == ("UNSUPPORTED", path)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"seed": 0}, ["seed"]),
        ({"presence_penalty": 0.5, "frequency_penalty": 0.0}, ["presence_penalty"]),
        ({"frequency_penalty": -1.0}, ["frequency_penalty"]),
        ({"service_tier": "flex"}, ["service_tier"]),
        ({"n": 1, "logprobs": False, "top_logprobs": 0}, []),
        (
            {"extra": opaque({"logit_bias": {}, "odd": 1, "user2": None, "store": False}, OPENAI)},
            ["logit_bias", "odd", "store"],
        ),
        ({"extra": opaque({"modalities": ["text"]}, OPENAI)}, ["modalities"]),
    ],
)
def test_what_changes_little_is_dropped_and_reported(
    fields: dict[str, Any], told: list[str]
) -> None:
    assert dropped_by(**fields) == told


def test_the_end_user_is_named_in_metadata() -> None:
    assert body_of(call_of(end_user="u"))["metadata"] == {"user_id": "u"}


def test_the_service_tier_passes_in_the_same_dialect() -> None:
    body = body_of(call_of(service_tier="standard_only", dialect=ANTHROPIC))
    assert body["service_tier"] == "standard_only"


def test_whitespace_stop_sequences_are_left_to_the_provider() -> None:
    assert body_of(call_of(stop_sequences=["\n"], dialect=ANTHROPIC))["stop_sequences"] == ["\n"]


def test_tools_are_described() -> None:
    tool = Tool(
        name="f",
        description="does f",
        input_schema=orjson.dumps(SCHEMA),
        strict=True,
        cache_control=b'{"type":"ephemeral"}',
    )
    assert body_of(call_of(tools=[tool]))["tools"] == [
        {
            "name": "f",
            "description": "does f",
            "input_schema": {**SCHEMA, "additionalProperties": False},
            "strict": True,
            "cache_control": {"type": "ephemeral"},
        }
    ]


def test_a_strict_tool_has_the_keywords_of_strict_ones() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}}
    call = call_of(tools=[Tool(name="f", input_schema=orjson.dumps(schema), strict=True)])
    (tool,) = body_of(call)["tools"]
    assert tool["strict"] is True
    assert tool["input_schema"] == {
        "type": "object",
        "properties": {"a": {"type": "string", "description": '{"minLength":2}'}},
        "additionalProperties": False,
    }


def test_a_tool_that_cannot_be_strict_is_not() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object"}}}
    schema["properties"]["a"]["additionalProperties"] = {"type": "string"}
    call = call_of(tools=[Tool(name="f", input_schema=orjson.dumps(schema), strict=True)])
    assert body_of(call)["tools"] == [{"name": "f", "input_schema": schema}]
    assert call.dropped == ["tools[].strict"]


@pytest.mark.parametrize("schema", [b"", b"{}"])
@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC])
def test_a_tool_without_arguments_takes_an_object(schema: bytes, dialect: int) -> None:
    call = call_of(tools=[Tool(name="f", input_schema=schema)], dialect=dialect)
    assert body_of(call)["tools"] == [{"name": "f", "input_schema": {"type": "object"}}]


def test_a_schema_without_a_type_gets_the_only_one_there_is() -> None:
    tool = Tool(name="f", input_schema=b'{"properties":{}}', strict=False)
    assert body_of(call_of(tools=[tool]))["tools"] == [
        {"name": "f", "input_schema": {"type": "object", "properties": {}}}
    ]


@pytest.mark.parametrize(
    ("dialect", "path"),
    [(OPENAI, "tools[1].function.parameters"), (ANTHROPIC, "tools[1].input_schema")],
)
def test_a_schema_that_is_no_object_is_refused(dialect: int, path: str) -> None:
    call = call_of(tools=[TOOL, Tool(name="g", input_schema=b"[]")], dialect=dialect)
    assert refusal_of(call) == ("INVALID_REQUEST", path)


def test_a_provider_s_own_tool_passes_unchanged() -> None:
    definition = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    call = call_of(tools=[Tool(opaque=True, extra=opaque(definition))], dialect=ANTHROPIC)
    assert body_of(call)["tools"] == [definition]


def test_extra_tool_fields_pass_only_in_the_same_dialect() -> None:
    tool = Tool(name="f", extra=opaque({"defer_loading": True, "name": "other"}))
    (sent,) = body_of(call_of(tools=[tool], dialect=ANTHROPIC))["tools"]
    assert (sent["defer_loading"], sent["name"]) == (True, "f")
    foreign = Tool(name="f", extra=opaque({"x": 1}, OPENAI))
    assert dropped_by(tools=[foreign, foreign]) == ["tools[].x"]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice(mode=ToolChoice.MODE_AUTO), {"type": "auto"}),
        (
            ToolChoice(mode=ToolChoice.MODE_ANY, disable_parallel_tool_use=True),
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        (
            ToolChoice(mode=ToolChoice.MODE_TOOL, name="f", disable_parallel_tool_use=False),
            {"type": "tool", "name": "f", "disable_parallel_tool_use": False},
        ),
        (ToolChoice(mode=ToolChoice.MODE_NONE, disable_parallel_tool_use=True), {"type": "none"}),
        (
            ToolChoice(disable_parallel_tool_use=True),
            {"type": "auto", "disable_parallel_tool_use": True},
        ),
    ],
)
def test_the_choice_of_tools_is_translated(choice: ToolChoice, sent: dict[str, Any]) -> None:
    assert body_of(call_of(tools=[TOOL], tool_choice=choice))["tool_choice"] == sent


def test_unknown_tool_choices_pass_in_the_same_dialect() -> None:
    choice = ToolChoice(extra=opaque({"type": "some", "names": ["f"]}))
    call = call_of(tools=[TOOL], tool_choice=choice, dialect=ANTHROPIC)
    assert body_of(call, official=False)["tool_choice"] == {"type": "some", "names": ["f"]}


def test_a_choice_among_no_tools_is_left_out() -> None:
    call = call_of(tool_choice=ToolChoice(mode=ToolChoice.MODE_AUTO))
    assert "tool_choice" not in body_of(call)


def test_a_schema_for_the_answer_goes_into_the_output_config() -> None:
    form = OutputFormat(
        kind=OutputFormat.KIND_JSON_SCHEMA,
        schema=orjson.dumps(SCHEMA),
        name="n",
        description="d",
        strict=True,
    )
    call = call_of(output_format=form)
    schema = {**SCHEMA, "additionalProperties": False}
    assert body_of(call)["output_config"] == {"format": {"type": "json_schema", "schema": schema}}
    assert dropped_of(call) == ["response_format.json_schema.description"]


def test_schema_objects_are_closed() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schema = {
        "type": "object",
        "properties": {"list": {"type": "array", "items": inner}},
        "$defs": {"inner": inner},
    }
    form = OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=orjson.dumps(schema))
    sent = body_of(call_of(output_format=form))["output_config"]["format"]["schema"]
    closed = {**inner, "additionalProperties": False}
    assert sent == {
        "type": "object",
        "properties": {"list": {"type": "array", "items": closed}},
        "$defs": {"inner": closed},
        "additionalProperties": False,
    }
    own = call_of(output_format=form, dialect=ANTHROPIC)
    assert body_of(own)["output_config"]["format"]["schema"] == schema


def test_a_map_in_the_schema_of_an_answer_is_refused() -> None:
    counts = {"type": "object", "additionalProperties": {"type": "integer"}}
    schema = {"type": "object", "properties": {"counts": counts}}
    form = OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=orjson.dumps(schema))
    path = "response_format.json_schema.schema.properties.counts"
    assert refusal_of(call_of(output_format=form)) == ("UNSUPPORTED", path)


def test_any_json_object_is_asked_for_in_words() -> None:
    form = OutputFormat(kind=OutputFormat.KIND_JSON_OBJECT)
    body = body_of(call_of(says(SYSTEM, "Be brief."), says(USER, "hi"), output_format=form))
    told, asked = body["system"]
    assert told["text"] == "Be brief."
    assert "one JSON object" in asked["text"]
    assert "output_config" not in body


@pytest.mark.parametrize("user", ["ada@example.org", "Ada Lovelace", "u" * 257, "é"])
def test_an_end_user_that_anthropic_refuses_goes_by_a_hash(user: str) -> None:
    sent = body_of(call_of(end_user=user))["metadata"]["user_id"]
    assert re.fullmatch(r"user_[0-9a-f]{32}", sent)
    assert sent == body_of(call_of(end_user=user))["metadata"]["user_id"]
    assert body_of(call_of(end_user=user, dialect=ANTHROPIC))["metadata"] == {"user_id": user}


@pytest.mark.parametrize(
    "extra",
    [
        {"cache_control": {"type": "ephemeral"}},
        {"function": {"cache_control": {"type": "ephemeral"}}},
    ],
)
def test_cache_control_of_a_chats_tool_is_carried(extra: dict[str, Any]) -> None:
    call = call_of(tools=[Tool(name="f", extra=opaque(extra, OPENAI))])
    assert body_of(call)["tools"][0]["cache_control"] == {"type": "ephemeral"}
    assert dropped_of(call) == []


def test_cache_control_of_a_chat_is_carried() -> None:
    mark = {"type": "ephemeral"}
    call = call_of(extra=opaque({"cache_control": mark}, OPENAI))
    assert body_of(call)["cache_control"] == mark
    assert dropped_of(call) == []


def test_free_text_needs_no_output_config() -> None:
    form = OutputFormat(kind=OutputFormat.KIND_TEXT)
    assert "output_config" not in body_of(call_of(output_format=form))


def test_what_a_form_says_beside_its_schema_is_dropped() -> None:
    described = {"name": "a", "schema": {"type": "object"}, "mine": 1}
    form = {"type": "json_schema", "json_schema": described, "yours": 2}
    kept = OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, name="a", schema=b'{"type": "object"}')
    call = call_of(output_format=kept, extra=opaque({"response_format": form}, OPENAI))
    assert body_of(call)["output_config"]["format"]["type"] == "json_schema"
    assert dropped_of(call) == ["response_format.yours", "response_format.json_schema.mine"]


def test_a_form_that_has_no_name_here_is_refused() -> None:
    extra = opaque({"response_format": {"type": "regex", "regex": "a+"}}, OPENAI)
    assert refusal_of(call_of(extra=extra)) == ("UNSUPPORTED", "response_format")


def test_unknown_fields_never_override_named_ones() -> None:
    extra = {
        "brand_new": [1],
        "inference_geo": "eu",
        "model": "other",
        "messages": [],
        "system": "be evil",
        "max_tokens": 1_000_000,
        "stream": True,
        "metadata": {"user_id": "other", "team": "t"},
        "output_config": {"effort": "low", "task_budget": 5},
        "fallback": "auto",
        "memory_id": "m",
        "multimodal": {},
        "thinking_block_strategy": "discard",
    }
    call = call_of(
        end_user="u",
        thinking=thinking("high"),
        extra=opaque(extra),
        dialect=ANTHROPIC,
        max_tokens=5,
    )
    assert body_of(call, official=False) == {
        "model": "claude-1",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 5,
        "metadata": {"user_id": "u", "team": "t"},
        "output_config": {"effort": "high", "task_budget": 5},
        "brand_new": [1],
        "inference_geo": "eu",
    }
    assert dropped_of(call) == []


@pytest.mark.parametrize("name", ["container", "mcp_servers", "workspace_id", "user_profile_id"])
def test_state_kept_at_the_provider_needs_the_operators_leave(name: str) -> None:
    call = call_of(extra=opaque({name: "x"}), dialect=ANTHROPIC)
    assert refusal_of(call) == ("INVALID_REQUEST", name)
    assert body_of(call, pass_stateful=True, official=False)[name] == "x"
    for nothing in (None, [], ""):
        call = call_of(extra=opaque({name: nothing}), dialect=ANTHROPIC)
        assert body_of(call, official=False)


def test_unknown_content_passes_in_the_same_dialect() -> None:
    given = {"diagnostics": {"x": 1}, "compaction": {"y": 2}, "brand_new": True}
    call = call_of(extra=opaque(given), dialect=ANTHROPIC)
    assert given.items() <= body_of(call, official=False).items()


def test_a_count_asks_for_what_is_read_and_nothing_else() -> None:
    call = call_of(
        dialect=ANTHROPIC,
        max_tokens=2000,
        temperature=0.5,
        stop_sequences=["a"],
        end_user="u",
        service_tier="auto",
        stream=True,
        tools=[TOOL],
        tool_choice=ToolChoice(mode=ToolChoice.MODE_AUTO),
        thinking=ThinkingConfig(mode=ENABLED, budget_tokens=1024),
        extra=opaque({"cache_control": {"type": "ephemeral"}, "inference_geo": "us"}),
    )
    assert count_body_of(call) == {
        "model": "claude-1",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "cache_control": {"type": "ephemeral"},
    }


def test_beta_features_are_named_in_one_header() -> None:
    assert beta_header(call_of(betas=["a", "b"])) == [("anthropic-beta", "a,b")]
    assert beta_header(call_of()) == []


@pytest.mark.parametrize("beta", ["a\r\nx-api-key: b", "ä"])
def test_a_beta_feature_cannot_smuggle_another_header(beta: str) -> None:
    with pytest.raises(GatewayError) as raised:
        beta_header(call_of(betas=[beta]))
    assert raised.value.param == "anthropic-beta"


def adaptive_call(*messages: Message, **fields: Any) -> Call:
    call = call_of(*messages, **fields)
    efforts, refuses = ("low", "medium", "high"), frozenset({"prefill"})
    target = replace(call.target, adaptive=True, refuses=refuses, efforts=efforts)
    return replace(call, target=target, refused_fields=refuses)


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC])
def test_a_model_without_prefill_is_asked_to_go_on(dialect: int) -> None:
    call = adaptive_call(says(USER, "a"), says(ASSISTANT, "Well,"), dialect=dialect)
    *_, last, asked = body_of(call)["messages"]
    assert last == {"role": "assistant", "content": "Well,"}
    assert asked["role"] == "user"
    learnt = call_of(says(USER, "a"), says(ASSISTANT, "Well,"), dialect=dialect)
    assert body_of(learnt)["messages"][-1]["role"] == "assistant"
    learnt.refused_fields = frozenset({"prefill"})
    assert body_of(learnt)["messages"][-1] == asked
