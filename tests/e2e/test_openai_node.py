"""The official Node SDK of OpenAI, with baseURL and apiKey alone."""

import json

import pytest

from tests.e2e.gateway import Gateway
from tests.e2e.node import Results, run_script, value
from tests.grid import each_row

pytestmark = pytest.mark.thorough(one_in=5)


@pytest.fixture(scope="module", params=["sandbox/echo", "openai/echo", "anthropic/echo"])
def results(request: pytest.FixtureRequest, front: Gateway) -> Results:
    return run_script("openai.mjs", front, request.param)


def test_whole_and_streamed_answers_say_the_same(results: Results) -> None:
    whole = value(results, "create")["choices"][0]
    assert whole["finish_reason"] == "stop"
    assert 'you said "hello there"' in whole["message"]["content"]
    *answering, last = value(results, "stream")
    deltas = [chunk["choices"][0]["delta"] for chunk in answering]
    text = "".join(delta.get("content") or "" for delta in deltas)
    assert text == whole["message"]["content"]
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == value(results, "create")["usage"]["total_tokens"]
    assert value(results, "streamHelper")["choices"][0]["message"]["content"] == text


def test_a_tool_loop_ends_with_an_answer_from_the_result(results: Results) -> None:
    loop = value(results, "toolLoop")
    (choice,) = loop["called"]["choices"]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert set(json.loads(call["function"]["arguments"])) == {"place"}
    assert "14 degrees, rain" in loop["answer"]["choices"][0]["message"]["content"]
    assert "14 degrees, rain" in value(results, "runTools")


def test_an_answer_parses_into_the_callers_type(results: Results) -> None:
    assert set(value(results, "parse")) == {"name", "population"}


def test_models_are_listed_and_found_one_by_one(results: Results) -> None:
    assert "sandbox/echo" in value(results, "models")
    assert value(results, "oneModel")["id"] == "sandbox/echo"


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
    assert results["wrongValue"]["param"] == "temperature"


def test_a_broken_stream_raises_instead_of_ending(results: Results) -> None:
    assert results["brokenStream"]["error"] == "APIError"
