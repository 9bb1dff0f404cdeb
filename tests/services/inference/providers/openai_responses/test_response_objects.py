"""Response objects that are handed on to callers of the same dialect."""

import json
from collections.abc import Sequence

import orjson
import pytest

from gateway.inference.v1.inference_pb2 import Event
from services.inference.providers.openai_responses.response_objects import passthrough
from tests.services.inference.providers.openai_responses.responses_answers import (
    USAGE,
    data,
    events_of,
    message,
    native_reader_of,
    natives,
    reasoning,
    response,
    search,
    text,
    whole,
    without_state,
)
from tests.services.inference.providers.openai_responses.responses_calls import Json


@pytest.mark.parametrize("space", [None, 2])
def test_a_whole_answer_is_passed_through_as_it_came(space: int | None) -> None:
    given = response(reasoning("a"), message(text("Häi")), search(), usage=USAGE | {"newest": 1})
    sent = json.dumps(given, indent=space, ensure_ascii=False).encode()
    passed = passthrough(sent)
    assert passed is not None and passed.passthrough == sent
    assert passed.response().usage == whole(message(), usage=given["usage"]).usage


@pytest.mark.parametrize("usage", [{}, {"input_tokens": True, "output_tokens": 1}])
def test_usage_without_counts_is_null(usage: Json) -> None:
    given = response(message(text("Hi")), usage=usage)
    passed = passthrough(json.dumps(given).encode())
    assert passed is not None
    assert json.loads(passed.passthrough)["usage"] is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"usage": None},
        {"usage": {"input_tokens": -1}},
        {"status": "queued"},
        {"output": [1]},
        {"id": None},
        {"object": "list"},
        {"error": {"message": "m"}},
    ],
)
def test_other_answers_are_not_passed_through(wrong: Json) -> None:
    assert passthrough(orjson.dumps({**response(message(text("Hi"))), **wrong})) is None


@pytest.mark.parametrize("word", [b"Hi", b"default"])
def test_bytes_that_are_no_text_are_not_passed_through(word: bytes) -> None:
    sent = orjson.dumps(response(message(text("Hi"))))
    assert word in sent and passthrough(sent.replace(word, b"\xff")) is None


KEPT: Sequence[Json] = (
    {"store": True},
    {"background": None},
    {"previous_response_id": "resp_0"},
    {"conversation": {"id": "conv_1"}},
    {"id": 'resp_"1'},
)


@pytest.mark.parametrize("kept", KEPT)
def test_what_a_provider_keeps_is_its_own_affair(kept: Json) -> None:
    given = {**response(message(text("Hi"))), **kept}
    passed = passthrough(orjson.dumps(given))
    assert passed is not None
    assert orjson.loads(passed.passthrough) == without_state(given)
    sent = [
        {**one, "response": {**one["response"], **kept}}
        for one in events_of(given)
        if "response" in one
    ]
    out: list[Event] = []
    native_reader_of().feed(data(*sent), out)
    assert [one["response"] for one in map(orjson.loads, natives(out))] == [
        without_state(one["response"]) for one in sent
    ]


@pytest.mark.parametrize("end", [b"}  }", b'},"newest":{}}', b'},"response":{}}'])
def test_events_without_a_response_at_their_end(end: bytes) -> None:
    created, *_ = events_of(response())
    sent = orjson.dumps(created).removesuffix(b"}}") + end
    out: list[Event] = []
    native_reader_of().feed(b"event: response.created\ndata: " + sent + b"\n\n", out)
    written = out[0].native
    assert written.endswith(b"}}") and list(orjson.loads(written))[-1] == "response"
