"""Every rule of the messages body, broken: the answer names the field."""

from typing import Any

import pytest

from facade.dialects.anthropic import parse_count_tokens, parse_messages
from services.common.errors import GatewayError
from tests.facade.dialects.anthropic.bodies import after_question, parsed, refusal, user
from tests.grid import each_row

TOOL = {"name": "look", "input_schema": {"type": "object"}}
BLOCK = "messages[0].content[0]"
SECOND = "messages[1].content[0]"


def image(**source: Any) -> list[dict[str, Any]]:
    return user({"type": "image", "source": source})


def document(**source: Any) -> list[dict[str, Any]]:
    return user({"type": "document", "source": source})


def base64(data: Any, media_type: Any = "image/png") -> list[dict[str, Any]]:
    return image(type="base64", media_type=media_type, data=data)


# Fields of the body, the path the error names, and what it says the field takes.
TABLE: list[tuple[dict[str, Any], str, str]] = [
    ({"model": ...}, "model", "is required"),
    ({"model": ""}, "model", "must not be empty"),
    ({"model": 5}, "model", "must be a string"),
    ({"model": None}, "model", "must be a string"),
    ({"max_tokens": ...}, "max_tokens", "is required"),
    ({"max_tokens": None}, "max_tokens", "must be an integer"),
    ({"max_tokens": -1}, "max_tokens", "at least 0"),
    ({"max_tokens": True}, "max_tokens", "must be an integer"),
    ({"max_tokens": 1.5}, "max_tokens", "must be an integer"),
    ({"max_tokens": "1"}, "max_tokens", "must be an integer"),
    ({"max_tokens": 2**32}, "max_tokens", "at most 4294967295"),
    ({"messages": ...}, "messages", "is required"),
    ({"messages": []}, "messages", "must not be empty"),
    ({"messages": {}}, "messages", "must be an array"),
    ({"messages": "Hi"}, "messages", "must be an array"),
    ({"messages": ["Hi"]}, "messages[0]", "must be an object"),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "is required"),
    ({"messages": [{"content": "a"}]}, "messages[0].role", "is required"),
    ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].role", "'user'"),
    ({"messages": [{"role": 1, "content": "a"}]}, "messages[0].role", "'user'"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "string or an array"),
    ({"messages": [{"role": "user", "content": ""}]}, "messages", "at least one message"),
    ({"messages": user({"type": "text", "text": ""})}, "messages", "at least one message"),
    ({"messages": user()}, "messages", "at least one message"),
    ({"messages": [{"role": "user", "content": ["a"]}]}, BLOCK, "must be an object"),
    ({"messages": user({"text": "a"})}, f"{BLOCK}.type", "is required"),
    ({"messages": user({"type": None})}, f"{BLOCK}.type", "a string"),
    ({"messages": user({"type": "text"})}, f"{BLOCK}.text", "is required"),
    ({"messages": user({"type": "text", "text": 5})}, f"{BLOCK}.text", "must be a string"),
    (
        {"messages": user({"type": "text", "text": "a", "cache_control": {}})},
        f"{BLOCK}.cache_control.type",
        "is required",
    ),
    ({"messages": user({"type": "image"})}, f"{BLOCK}.source", "is required"),
    ({"messages": image()}, f"{BLOCK}.source.type", "is required"),
    ({"messages": image(type="base64", data="AA==")}, f"{BLOCK}.source.media_type", "is required"),
    ({"messages": base64("AA==", "png")}, f"{BLOCK}.source.media_type", "MIME type"),
    ({"messages": base64("AA==", "text/plain")}, f"{BLOCK}.source.media_type", "an image"),
    ({"messages": base64("")}, f"{BLOCK}.source.data", "must not be empty"),
    ({"messages": base64("AA=")}, f"{BLOCK}.source.data", "base64"),
    ({"messages": base64("A A=")}, f"{BLOCK}.source.data", "base64"),
    ({"messages": base64("é===")}, f"{BLOCK}.source.data", "base64"),
    ({"messages": base64("__8=")}, f"{BLOCK}.source.data", "base64"),
    ({"messages": base64(5)}, f"{BLOCK}.source.data", "must be a string"),
    ({"messages": image(type="url", url="data:image/png,AA")}, f"{BLOCK}.source.url", "http"),
    ({"messages": image(type="url", url="file:///etc/passwd")}, f"{BLOCK}.source.url", "http"),
    ({"messages": image(type="url", url="https://")}, f"{BLOCK}.source.url", "http"),
    ({"messages": image(type="url", url="https://a b")}, f"{BLOCK}.source.url", "http"),
    ({"messages": image(type="file", file_id="")}, f"{BLOCK}.source.file_id", "must not be empty"),
    ({"messages": document(type="text", media_type="text/html", data="a")},
     f"{BLOCK}.source.media_type", "'text/plain'"),
    ({"messages": document(type="text", media_type="text/plain", data="")},
     f"{BLOCK}.source.data", "must not be empty"),
    ({"messages": document(type="base64", media_type="application/pdf", data="!")},
     f"{BLOCK}.source.data", "base64"),
    ({"messages": user({"type": "tool_use", "id": "a", "name": "b", "input": {}})},
     f"{BLOCK}.type", "'assistant'"),
    ({"messages": user({"type": "thinking", "thinking": "a", "signature": "b"})},
     f"{BLOCK}.type", "'assistant'"),
    ({"messages": user({"type": "redacted_thinking", "data": "a"})},
     f"{BLOCK}.type", "'assistant'"),
    ({"messages": after_question({"type": "tool_result", "tool_use_id": "a"})},
     f"{SECOND}.type", "'user'"),
    ({"messages": after_question({"type": "tool_use", "id": "a", "name": "b", "input": "{}"})},
     f"{SECOND}.input", "must be an object"),
    ({"messages": after_question({"type": "tool_use", "id": "", "name": "b", "input": {}})},
     f"{SECOND}.id", "must not be empty"),
    ({"messages": after_question({"type": "tool_use", "id": "a", "input": {}})},
     f"{SECOND}.name", "is required"),
    ({"messages": after_question({"type": "thinking", "thinking": "a", "signature": 5})},
     f"{SECOND}.signature", "must be a string"),
    ({"messages": user({"type": "tool_result", "content": "a"})},
     f"{BLOCK}.tool_use_id", "is required"),
    ({"messages": user({"type": "tool_result", "tool_use_id": "a", "content": 5})},
     f"{BLOCK}.content", "must be a string or an array"),
    ({"messages": user({"type": "tool_result", "tool_use_id": "a", "is_error": "no"})},
     f"{BLOCK}.is_error", "true or false"),
    ({"messages": user(
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "thinking"}]}
    )}, f"{BLOCK}.content[0].type", "not thinking"),
    ({"messages": user(
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image", "source": 1}]}
    )}, f"{BLOCK}.content[0].source", "must be an object"),
    ({"messages": [
        {"role": "user", "content": "a"},
        {"role": "system", "content": [{"type": "image", "source": {"type": "url", "url": "http://a"}}]},
    ]}, f"{SECOND}.type", "'text'"),
    ({"system": 5}, "system", "must be a string or an array"),
    ({"system": [{"type": "image"}]}, "system[0].type", "'text'"),
    ({"system": [{"type": "text"}]}, "system[0].text", "is required"),
    ({"temperature": 1.01}, "temperature", "at most 1"),
    ({"temperature": -0.1}, "temperature", "at least 0"),
    ({"temperature": "1"}, "temperature", "must be a number"),
    ({"temperature": True}, "temperature", "must be a number"),
    ({"top_p": 1.1}, "top_p", "at most 1"),
    ({"top_p": -1}, "top_p", "at least 0"),
    ({"top_k": 0}, "top_k", "at least 1"),
    ({"top_k": 2.0}, "top_k", "must be an integer"),
    ({"stop_sequences": "a"}, "stop_sequences", "must be an array"),
    ({"stop_sequences": ["a", ""]}, "stop_sequences[1]", "must not be empty"),
    ({"stop_sequences": [5]}, "stop_sequences[0]", "must be a string"),
    ({"stream": "true"}, "stream", "true or false"),
    ({"stream": 1}, "stream", "true or false"),
    ({"metadata": "a"}, "metadata", "must be an object"),
    ({"metadata": {"user_id": 5}}, "metadata.user_id", "must be a string"),
    ({"service_tier": 5}, "service_tier", "must be a string"),
    ({"thinking": "enabled"}, "thinking", "must be an object"),
    ({"thinking": {}}, "thinking.type", "is required"),
    ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens", "is required"),
    ({"thinking": {"type": "enabled", "budget_tokens": 1023}},
     "thinking.budget_tokens", "at least 1024"),
    ({"thinking": {"type": "enabled", "budget_tokens": 4096}},
     "thinking.budget_tokens", "below max_tokens (4096)"),
    ({"thinking": {"type": "enabled", "budget_tokens": 2048.5}},
     "thinking.budget_tokens", "must be an integer"),
    ({"output_config": {"effort": ""}}, "output_config.effort", "must not be empty"),
    ({"output_config": {"format": {"type": "json_schema"}}},
     "output_config.format.schema", "is required"),
    ({"output_config": {"format": {"type": "xml", "schema": {}}}},
     "output_config.format.type", "'json_schema'"),
    ({"tools": {}}, "tools", "must be an array"),
    ({"tools": ["a"]}, "tools[0]", "must be an object"),
    ({"tools": [{"name": "a"}]}, "tools[0].input_schema", "is required"),
    ({"tools": [{"input_schema": {}}]}, "tools[0].name", "is required"),
    ({"tools": [{"name": "a", "input_schema": []}]}, "tools[0].input_schema", "must be an object"),
    ({"tools": [{"name": "", "input_schema": {}}]}, "tools[0].name", "must not be empty"),
    ({"tools": [{"name": "a" * 129, "input_schema": {}}]}, "tools[0].name", "at most 128"),
    ({"tools": [{"type": 5, "name": "a", "input_schema": {}}]}, "tools[0].type", "'custom'"),
    ({"tools": [TOOL, TOOL]}, "tools[1].name", "unique"),
    ({"tools": [TOOL, {"type": "bash_20250124", "name": "look"}]}, "tools[1].name", "unique"),
    ({"tool_choice": "any"}, "tool_choice", "requires tools"),
    ({"tool_choice": {"type": "any"}, "tools": []}, "tool_choice", "requires tools"),
    ({"tool_choice": {"type": "tool", "name": "look"}}, "tool_choice", "requires tools"),
    ({"tool_choice": "tool", "tools": [TOOL]}, "tool_choice", "'auto', 'any' or 'none'"),
    ({"tool_choice": 5, "tools": [TOOL]}, "tool_choice", "or an object"),
    ({"tool_choice": {"type": 7}, "tools": [TOOL]}, "tool_choice.type", "string"),
    ({"tool_choice": {"type": "tool"}, "tools": [TOOL]}, "tool_choice.name", "is required"),
    ({"tool_choice": {"type": "tool", "name": "x"}, "tools": [TOOL]}, "tool_choice.name", "'x'"),
    ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": 1}, "tools": [TOOL]},
     "tool_choice.disable_parallel_tool_use", "true or false"),
    ({"thinking_block_strategy": "keep"}, "thinking_block_strategy", "'preserve'"),
    ({"use_built_in_tools": "yes"}, "use_built_in_tools", "true or false"),
    ({"use_built_in_tools": 1}, "use_built_in_tools", "true or false"),
]  # fmt: skip


@each_row(("fields", "param", "takes"), TABLE)
def test_a_broken_rule_is_reported_with_its_field(fields, param, takes):
    error = refusal(**fields)
    assert error.param == param
    assert error.message.startswith(f"{param}: ")
    assert takes in error.message


@pytest.mark.parametrize("fields", [{"fallback": "auto"}, {"fallback_config": {}}])
def test_fallback_is_not_taken_by_the_coding_endpoint(fields):
    (name,) = fields
    assert refusal(coding=True, **fields).param == name
    parsed(**fields)


def test_one_message_too_many():
    error = refusal(messages=[{"role": "user", "content": "a"}] * 100_001)
    assert (error.param, error.message) == ("messages", "messages: must have at most 100000 items")


@each_row("parse", [parse_messages, parse_count_tokens])
@each_row(
    ("given", "says"),
    [
        (b"", "not valid JSON"),
        (b'{"model": "m", "max', "not valid JSON"),
        (b'{"model": "m",}', "not valid JSON"),
        (b'{"model": "\xff"}', "not valid JSON"),
        (rb'{"model": "\ud800"}', "not valid JSON"),
        (b'{"model": "m", "x": ' + b"[" * 100_000, "more than 200 levels"),
        (b'{"model": "m", "x": ' + b"9" * 10_000 + b"}", "not valid JSON"),
        (b"[]", "must be an object"),
        (b"null", "must be an object"),
        (b'"a"', "must be an object"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(parse, given, says):
    with pytest.raises(GatewayError, match=says) as caught:
        parse(given, betas=[], coding=False)
    assert caught.value.http_status == 400
    assert caught.value.param == ""


NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"1e999"]


@each_row("number", NUMBERS)
@each_row(
    ("template", "param"),
    [
        (b'"temperature": %s', "temperature"),
        (b'"x": [{"y": %s}]', "the body"),
        (b'"metadata": {"a": %s}', "the body"),
        (b'"tools": [{"name": "a", "input_schema": {"a": %s}}]', "tools[0].input_schema"),
        (b'"tools": [{"type": "new", "a": %s}]', "tools[0]"),
        (b'"thinking": {"type": "adaptive", "a": %s}', "thinking"),
        (b'"system": [{"type": "text", "text": "a", "x": %s}]', "system[0]"),
    ],
)
def test_an_invalid_number_is_refused_in_every_place(number, template, param):
    given = (
        b'{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "a"}], '
        + template % number
        + b"}"
    )
    with pytest.raises(GatewayError, match="finite number") as caught:
        parse_messages(given, betas=[], coding=False)
    assert caught.value.http_status == 400
    assert caught.value.message.startswith(f"{param}: ")


def test_an_error_shows_nothing_of_what_was_sent():
    assert "secret" not in refusal(temperature="secret").message
    assert "secret" not in refusal(messages=[{"role": "secret", "content": "secret"}]).message
