"""Requests and answers of clients that know functions, and no tools yet."""

from typing import Any

import orjson
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from facade.dialects.openai import (
    FUNCTION_NAMES,
    FunctionChatStream,
    parse_chat,
    render_function_completion,
)
from facade.dialects.paths import SourceMap
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.inference.v1.inference_pb2 import ToolChoice
from tests.facade.dialects.openai.answers import (
    CREATED,
    answer,
    call,
    choice,
    chunks,
    stream_events,
    text,
)
from tests.facade.dialects.openai.bodies import body, json_of, parse, request
from tests.lazy_requests import lazy_of

WEATHER = {"name": "weather", "description": "Of a city", "parameters": {"type": "object"}}
CALL = {"name": "weather", "arguments": '{"city":"Paris"}'}
ASKED = {"role": "user", "content": "Hello"}


def messages(*given: dict[str, Any]) -> list[conversation.Message]:
    return list(request(messages=list(given)).messages)


def rendered(*blocks: conversation.Block, reason: str = "TOOL_USE") -> dict[str, Any]:
    """Return the choice of an answer, which the official client has read."""
    raw = render_function_completion(answer(choice(*blocks, reason=reason)), CREATED)
    ChatCompletion.model_validate_json(raw, strict=True)
    (parsed,) = orjson.loads(raw)["choices"]
    return dict(parsed)


def streamed(*blocks: conversation.Block, reason: str = "TOOL_USE") -> list[dict[str, Any]]:
    """Return the choices of a stream's chunks, which the official client has read."""
    stream = FunctionChatStream(CREATED, include_usage=False)
    events = stream_events(answer(choice(*blocks, reason=reason)), 4)
    found = chunks(stream.encode(events) + stream.finish())
    for chunk in found:
        ChatCompletionChunk.model_validate(chunk)
    return [chunk["choices"][0] for chunk in found]


@pytest.mark.parametrize("lazily", [False, True])
def test_functions_are_tools_that_are_called_one_at_a_time(lazily: bool) -> None:
    parsed = parse_chat(body(functions=[WEATHER, {"name": "g", "x": 1}]), lazily=lazily)
    assert parsed.calls_functions
    assert lazy_of(parsed) is None
    weather, other = parsed.request.tools
    assert (weather.name, weather.description) == ("weather", "Of a city")
    assert orjson.loads(weather.input_schema) == {"type": "object"}
    assert json_of(other.extra) == {"function": {"x": 1}}
    assert parsed.request.tool_choice.disable_parallel_tool_use


@pytest.mark.parametrize(
    ("given", "mode", "name"),
    [
        ("auto", ToolChoice.MODE_AUTO, ""),
        ("none", ToolChoice.MODE_NONE, ""),
        ({"name": "weather"}, ToolChoice.MODE_TOOL, "weather"),
    ],
)
def test_function_call_is_the_choice_of_a_tool(
    given: object, mode: ToolChoice.Mode.ValueType, name: str
) -> None:
    chosen = request(functions=[WEATHER], function_call=given).tool_choice
    assert (chosen.mode, chosen.name) == (mode, name)


def test_nulls_make_no_request_of_functions() -> None:
    assert not parse(functions=None, function_call=None).calls_functions


def test_a_call_and_its_result_are_those_of_a_tool() -> None:
    _, called, result, again, second = messages(
        ASKED,
        {"role": "assistant", "content": None, "function_call": CALL},
        {"role": "function", "name": "weather", "content": "sunny"},
        {"role": "assistant", "content": "Once more", "function_call": CALL},
        {"role": "function", "name": "weather", "content": "rainy"},
    )
    (first,) = called.blocks
    assert (first.tool_use.name, first.tool_use.input) == ("weather", '{"city":"Paris"}')
    assert (result.role, result.name) == (conversation.ROLE_USER, "")
    (answered,) = result.blocks
    assert answered.tool_result.tool_use_id == first.tool_use.id
    assert [block.text for block in answered.tool_result.blocks] == ["sunny"]
    assert again.blocks[0].text == "Once more"
    assert again.blocks[1].tool_use.id != first.tool_use.id
    assert second.blocks[0].tool_result.tool_use_id == again.blocks[1].tool_use.id


def test_a_call_that_is_written_both_ways_is_one() -> None:
    tool_call = {"id": "call_1", "type": "function", "function": CALL}
    both = {"role": "assistant", "function_call": CALL, "tool_calls": [tool_call]}
    _, called = messages(ASKED, both)
    assert [block.tool_use.id for block in called.blocks] == ["call_1"]


def test_a_whole_answer_calls_a_function() -> None:
    found = rendered(text("Let me see."), call("call_1", "weather", '{"city":"Paris"}'))
    assert found["finish_reason"] == "function_call"
    assert found["message"]["content"] == "Let me see."
    assert found["message"]["function_call"] == CALL
    assert "tool_calls" not in found["message"]


def test_a_stream_calls_a_function_once() -> None:
    found = streamed(
        text("Let me see."),
        call("call_1", "weather", '{"city":"Paris"}'),
        call("call_2", "weather", '{"city":"Rome"}'),
    )
    parts = [one["delta"]["function_call"] for one in found if "function_call" in one["delta"]]
    assert [part["name"] for part in parts if "name" in part] == ["weather"]
    assert "".join(part["arguments"] for part in parts) == '{"city":"Paris"}'
    assert not any("tool_calls" in one["delta"] for one in found)
    assert found[-1]["finish_reason"] == "function_call"


def test_a_call_without_arguments_has_an_object_of_them() -> None:
    assert rendered(call("call_1", "f", ""))["message"]["function_call"]["arguments"] == "{}"
    parts = [one["delta"].get("function_call") for one in streamed(call("call_1", "f", ""))]
    assert "".join(part["arguments"] for part in parts if part) == "{}"


@pytest.mark.parametrize(("reason", "name"), [("END_TURN", "stop"), ("MAX_TOKENS", "length")])
def test_an_answer_without_a_call_is_like_any_other(reason: str, name: str) -> None:
    found = rendered(text("Hi"), reason=reason)
    assert (found["message"]["content"], found["finish_reason"]) == ("Hi", name)
    assert streamed(text("Hi"), reason=reason)[-1]["finish_reason"] == name


@pytest.mark.parametrize(
    ("canonical", "named"),
    [
        ("tools", "functions"),
        ("tools[2].input_schema", "functions[2].parameters"),
        ("tool_choice.name", "function_call.name"),
        ("messages[1].blocks[0].tool_use.input", "messages[1].function_call.input"),
    ],
)
def test_paths_are_those_of_functions(canonical: str, named: str) -> None:
    parsed = parse(messages=[ASKED, {"role": "assistant", "function_call": CALL}])
    assert FUNCTION_NAMES.translate(canonical, parsed.source_map) == named
    assert FUNCTION_NAMES.translate("temperature", SourceMap()) == "temperature"
