"""Validation of a chat completion's body, and its canonical request."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facade.dialects.openai import ChatRequest, parse_chat
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.inference.v1 import inference_pb2 as inference
from gateway.inference.v1.inference_pb2 import OutputFormat
from services.common.errors import GatewayError
from tests.facade.dialects.openai.bodies import (
    HELLO,
    body,
    json_of,
    parse,
    refused,
    refused_bytes,
    request,
)
from tests.grid import each_row
from tests.thoroughness import examples

SCHEMA = {"type": "object", "properties": {"a": {"enum": [None, 1.5]}}}
FUNCTION = {"type": "function", "function": {"name": "f"}}


def test_the_least_request_becomes_its_model_and_message() -> None:
    parsed = parse()
    assert (parsed.stream, parsed.include_usage) == (False, False)
    assert parsed.request == inference.GenerateRequest(
        model="m",
        dialect=conversation.DIALECT_OPENAI,
        omits_stop_sequence=True,
        has_unsigned_thinking=True,
        requires_single_text=True,
        messages=[
            conversation.Message(
                role=conversation.ROLE_USER, blocks=[conversation.Block(text="hello")]
            )
        ],
    )


@each_row(
    ("field", "value"),
    [
        ("temperature", 0.0),
        ("temperature", 2),
        ("top_p", 0.0),
        ("top_p", 1.0),
        ("n", 128),
        ("seed", -(2**63)),
        ("seed", 2**63 - 1),
        ("presence_penalty", -2.0),
        ("frequency_penalty", 2.0),
        ("logprobs", False),
        ("max_tokens", 1),
        ("service_tier", "flex"),
    ],
)
def test_a_parameter_keeps_its_name_and_value(field: str, value: object) -> None:
    changed = request(**{field: value})
    assert getattr(changed, field) == value
    assert {descriptor.name for descriptor, _ in changed.ListFields()} >= {field}


@each_row(
    ("fields", "param"),
    [
        ({"model": ...}, "model"),
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"model": 4}, "model"),
        ({"messages": ...}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [HELLO] * 100_001}, "messages"),
        ({"temperature": "1"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_p": -1}, "top_p"),
        ({"top_p": [1]}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"n": 1.5}, "n"),
        ({"n": True}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 2**32}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_completion_tokens"),
        ({"seed": 2**63}, "seed"),
        ({"seed": "a"}, "seed"),
        ({"presence_penalty": 2.5}, "presence_penalty"),
        ({"frequency_penalty": -2.5}, "frequency_penalty"),
        ({"stop": ""}, "stop"),
        ({"stop": 5}, "stop"),
        ({"stop": ["a", ""]}, "stop[1]"),
        ({"stop": ["a", None]}, "stop[1]"),
        ({"stop": ["a"] * 65}, "stop"),
        ({"logit_bias": []}, "logit_bias"),
        ({"logit_bias": {"50256": 101}}, "logit_bias.50256"),
        ({"logit_bias": {"50256": "1"}}, "logit_bias.50256"),
        ({"logprobs": 1}, "logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {}}, "response_format.type"),
        ({"response_format": {"type": ""}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
            "response_format.json_schema.name",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a" * 65}}},
            "response_format.json_schema.name",
        ),
        ({"reasoning_effort": ""}, "reasoning_effort"),
        ({"reasoning_effort": "a" * 65}, "reasoning_effort"),
        ({"reasoning_effort": 3}, "reasoning_effort"),
        ({"parallel_tool_calls": "yes"}, "parallel_tool_calls"),
        ({"user": 5}, "user"),
        ({"service_tier": 5}, "service_tier"),
        ({"stream": "true"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": False, "stream_options": {}}, "stream_options"),
        ({"stream": True, "stream_options": []}, "stream_options"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"functions": [1]}, "functions[0]"),
        ({"functions": [{"parameters": {}}]}, "functions[0].name"),
        ({"functions": [{"name": "a b"}]}, "functions[0].name"),
        ({"functions": [{"name": "f"}, {"name": "f"}]}, "functions[1].name"),
        ({"functions": [{"name": "f"}], "tools": []}, "tools"),
        ({"functions": [{"name": "f"}], "tool_choice": "auto"}, "tool_choice"),
        ({"functions": [{"name": "f"}], "function_call": "required"}, "function_call"),
        ({"functions": [{"name": "f"}], "function_call": {"name": "g"}}, "function_call.name"),
        ({"function_call": {"name": "f"}}, "function_call"),
        ({"use_built_in_tools": False}, "use_built_in_tools"),
        ({"thinking_block_strategy": "discard"}, "thinking_block_strategy"),
        ({"multimodal": {"images": {}}}, "multimodal.images"),
        ({"fallback": "maybe"}, "fallback"),
        ({"fallback": "strict"}, "fallback_config"),
        ({"memory_id": ""}, "memory_id"),
        ({"memory_config": {"history_window": 4}}, "memory_config.history_window"),
    ],
)
def test_a_field_that_breaks_a_rule_is_named(fields: dict[str, Any], param: str) -> None:
    assert refused(**fields).param == param


@each_row(
    ("raw", "says"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b'{"model":"m","messages":[{"role":"us', "not valid JSON"),
        (b"[]", "must be an object"),
        (b"null", "must be an object"),
        (b'"hello"', "must be an object"),
        (b"\xff\xfe", "not valid JSON"),
        (b'{"model":"\xff"}', "not valid JSON"),
        (body(model="m").replace(b"hello", b"\\ud800"), "not valid JSON"),
        (body(a=0).replace(b'"a":0', b'"a":' + b"[" * 5000 + b"]" * 5000), "more than 200 levels"),
    ],
)
def test_what_is_not_a_json_object_is_refused(raw: bytes, says: str) -> None:
    error = refused_bytes(raw)
    assert error.param == ""
    assert says in error.message


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_numbers_outside_json_are_refused_with_their_path(number: bytes) -> None:
    assert refused_bytes(body(top_p=0).replace(b'"top_p":0', b'"top_p":' + number)).param == "top_p"
    refused_bytes(body(far=[0]).replace(b"[0]", b"[" + number + b"]"))
    tool = {"type": "function", "function": {"name": "f", "parameters": {"maximum": 77}}}
    schema = refused_bytes(body(tools=[tool]).replace(b"77", number))
    assert schema.param == "tools[0].function.parameters"


def test_nulls_of_optional_fields_say_nothing() -> None:
    fields = [
        "temperature",
        "top_p",
        "n",
        "stop",
        "max_tokens",
        "max_completion_tokens",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "response_format",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning_effort",
        "user",
        "service_tier",
        "stream",
        "stream_options",
        "functions",
        "function_call",
        "verbosity",
    ]
    assert parse(**dict.fromkeys(fields)) == parse()


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_either_name_of_the_token_limit_counts(name: str) -> None:
    assert request(**{name: 7}).max_tokens == 7


def test_the_callers_name_of_the_token_limit_is_kept() -> None:
    assert request(max_completion_tokens=7).names_max_completion_tokens
    assert not request(max_tokens=7).HasField("names_max_completion_tokens")
    assert not request(max_tokens=7, max_completion_tokens=7).names_max_completion_tokens


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ({"type": "grammar", "grammar": "root ::= 'a'"}, None),
        ({"type": "json_schema", "schema": {"type": "object"}}, None),
        ({"type": "json_object", "schema": {"type": "object"}}, OutputFormat.KIND_JSON_OBJECT),
        (
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "mine": 1}},
            OutputFormat.KIND_JSON_SCHEMA,
        ),
    ],
)
def test_a_form_with_more_than_is_known_is_kept_whole(form: dict[str, Any], kind: Any) -> None:
    parsed = request(response_format=form)
    assert json_of(parsed.extra) == {"response_format": form}
    assert parsed.HasField("output_format") == (kind is not None)
    assert kind is None or parsed.output_format.kind == kind


def test_both_names_of_the_token_limit_may_agree() -> None:
    assert request(max_tokens=7, max_completion_tokens=7).max_tokens == 7


@pytest.mark.parametrize(("stop", "becomes"), [("a", ["a"]), (["a", "b"], ["a", "b"]), ([], [])])
def test_stop_is_one_string_or_several(stop: object, becomes: list[str]) -> None:
    assert request(stop=stop).stop_sequences == becomes


def test_alternatives_are_asked_for_with_log_probabilities() -> None:
    changed = request(logprobs=True, top_logprobs=20)
    assert (changed.logprobs, changed.top_logprobs) == (True, 20)


@each_row("effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max", "default"])
def test_reasoning_effort_keeps_its_name(effort: str) -> None:
    thinking = request(reasoning_effort=effort).thinking
    assert thinking == inference.ThinkingConfig(effort=effort)


def test_the_user_is_the_end_user() -> None:
    assert request(user="u-1").end_user == "u-1"


@pytest.mark.parametrize(
    ("given_format", "becomes"),
    [
        ({"type": "text"}, OutputFormat(kind=OutputFormat.KIND_TEXT)),
        ({"type": "json_object"}, OutputFormat(kind=OutputFormat.KIND_JSON_OBJECT)),
        (
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "a",
                    "schema": SCHEMA,
                    "strict": False,
                    "description": "what",
                },
            },
            OutputFormat(
                kind=OutputFormat.KIND_JSON_SCHEMA,
                name="a",
                schema=orjson.dumps(SCHEMA),
                strict=False,
                description="what",
            ),
        ),
        (
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strict": None}},
            OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, name="a", schema=b"{}"),
        ),
    ],
)
def test_the_form_of_the_answer_is_kept(
    given_format: dict[str, Any], becomes: OutputFormat
) -> None:
    assert request(response_format=given_format).output_format == becomes


@pytest.mark.parametrize(
    ("options", "include_usage"),
    [
        (..., False),
        (None, False),
        ({}, False),
        ({"include_usage": False}, False),
        ({"include_usage": True, "include_obfuscation": None}, True),
    ],
)
def test_a_stream_reports_its_usage_on_request(options: object, include_usage: bool) -> None:
    parsed = parse(stream=True, stream_options=options)
    assert (parsed.stream, parsed.include_usage) == (True, include_usage)
    assert not parsed.request.HasField("extra")


def test_further_options_of_a_stream_travel_on() -> None:
    options = {"include_usage": True, "include_obfuscation": False}
    extra = parse(stream=True, stream_options=options, verbosity="low").request.extra
    expected = {"verbosity": "low", "stream_options": {"include_obfuscation": False}}
    assert orjson.loads(extra.json) == expected


def test_fields_without_a_name_travel_on_as_they_came() -> None:
    fields = {
        "verbosity": "low",
        "metadata": {"a": "b"},
        "safety_identifier": "s",
        "huge": 10**30,
        "deep": [None, {"é": 1.5}],
    }
    assert json_of(request(**fields, gone=None).extra) == fields


def test_logit_bias_keeps_its_numbers_as_written() -> None:
    extra = request(logit_bias={"1": -100, "2": 0.5}).extra
    assert extra.json == b'{"logit_bias":{"1":-100,"2":0.5}}'


def test_extension_fields_are_parsed_and_not_passed_on() -> None:
    changed = request(
        multimodal={"image": {"model": "eye"}},
        fallback="disabled",
        fallback_config="ignored",
        memory_id="talk",
        memory_config={"memory_mode": "read_only"},
    )
    assert changed.multimodal.image.model == "eye"
    assert changed.fallback == inference.FALLBACK_MODE_DISABLED
    assert changed.memory.memory_id == "talk"
    assert changed.memory.mode == inference.Memory.MODE_READ_ONLY
    assert not changed.HasField("extra")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([*ChatRequest.model_fields, "other"])


@given(st.dictionaries(NAMES, JSON, max_size=4))
@settings(max_examples=examples(80), deadline=None)
def test_any_json_is_understood_or_refused(fields: dict[str, Any]) -> None:
    try:
        parse_chat(body(**{"fallback": "strict"} | fields))
    except GatewayError as error:
        assert error.http_status == 400


@given(st.binary(max_size=60), st.integers(0, 60))
def test_a_damaged_body_never_crashes(noise: bytes, at: int) -> None:
    raw = body(tools=[FUNCTION], stop=["a"])
    try:
        parse_chat(raw[:at] + noise + raw[at + 5 :])
    except GatewayError as error:
        assert error.http_status == 400
