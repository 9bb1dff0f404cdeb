"""The official Node SDK of Anthropic, with baseURL and apiKey alone."""

from typing import Any

import pytest

from tests.e2e.gateway import Gateway
from tests.e2e.node import Results, run_script, value
from tests.grid import each_row

pytestmark = pytest.mark.thorough(one_in=5)


@pytest.fixture(scope="module", params=["sandbox/echo", "openai/echo", "anthropic/echo"])
def results(request: pytest.FixtureRequest, front: Gateway) -> Results:
    return run_script("anthropic.mjs", front, request.param)


def text_of(message: Any) -> str:
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def test_whole_and_streamed_answers_say_the_same(results: Results) -> None:
    whole = value(results, "create")
    assert whole["stop_reason"] == "end_turn"
    assert 'you said "hello there"' in text_of(whole)
    deltas = [
        event["delta"]["text"]
        for event in value(results, "stream")
        if event["type"] == "content_block_delta"
    ]
    assert "".join(deltas) == text_of(whole)
    helped = value(results, "streamHelper")
    assert text_of(helped) == text_of(whole)
    assert helped["usage"]["output_tokens"] == whole["usage"]["output_tokens"]


def test_a_tool_loop_ends_with_an_answer_from_the_result(results: Results) -> None:
    loop = value(results, "toolLoop")
    assert loop["called"]["stop_reason"] == "tool_use"
    assert "14 degrees, rain" in text_of(loop["answer"])


def test_streamed_tool_input_comes_whole(results: Results) -> None:
    blocks = value(results, "streamedTools")["content"]
    (call,) = [block for block in blocks if block["type"] == "tool_use"]
    assert set(call["input"]) == {"place"}


def test_an_answer_parses_into_the_callers_type(results: Results) -> None:
    assert set(value(results, "parse")) == {"name", "population"}


def test_tokens_are_counted(results: Results) -> None:
    assert value(results, "countTokens")["input_tokens"] > 0


def test_models_are_listed_and_found_one_by_one(results: Results) -> None:
    assert "sandbox/echo" in value(results, "models")
    assert value(results, "oneModel")["id"] == "sandbox/echo"


def test_the_coding_endpoint_answers(results: Results) -> None:
    assert 'you said "hello there"' in text_of(value(results, "coding"))


@each_row(
    ("step", "error", "status"),
    [
        ("unknownKey", "AuthenticationError", 401),
        ("unknownModel", "NotFoundError", 404),
        ("wrongValue", "BadRequestError", 400),
        ("rateLimit", "RateLimitError", 429),
        ("failure", "InternalServerError", 502),
    ],
)
def test_an_error_has_its_class(results: Results, step: str, error: str, status: int) -> None:
    assert (results[step]["error"], results[step]["status"]) == (error, status)
    assert results[step]["requestId"]


def test_an_error_names_its_field(results: Results) -> None:
    assert "temperature" in results["wrongValue"]["message"]


def test_a_broken_stream_raises_instead_of_ending(results: Results) -> None:
    assert results["brokenStream"]["error"] in ("APIError", "InternalServerError")
