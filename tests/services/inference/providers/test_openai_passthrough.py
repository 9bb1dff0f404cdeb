"""Which chat completions go as they are: those that say the same when they are translated."""

from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from facade.dialects.openai import render_completion
from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Usage
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse
from services.common.errors import UpstreamError
from services.inference.providers.openai.events import events_from_whole
from services.inference.providers.openai.passthrough import (
    passthrough_answer,
    plain_answer,
    whole_of_texts,
)
from services.inference.stream.accumulator import Accumulator
from tests.grid import each_row
from tests.passthrough_answers import completion_told
from tests.services.inference.providers.changes import (
    GONE,
    Path,
    changed,
    differing,
    formats,
    spread,
    written,
)
from tests.services.inference.providers.openai_answers import Provider
from tests.services.inference.providers.openai_calls import call_of
from tests.services.inference.providers.plain_answers import check_plain
from tests.thoroughness import examples

# As OpenAI answers, with every field it has.
OFFICIAL = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "gpt-1",
    "choices": [
        {
            "index": index,
            "message": {
                "role": "assistant",
                "content": "Hi ☕",
                "refusal": None,
                "annotations": [],
            },
            "logprobs": None,
            "finish_reason": "stop",
        }
        for index in range(2)
    ],
    "usage": {
        "prompt_tokens": 19,
        "completion_tokens": 10,
        "total_tokens": 29,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 3,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 2,
            "rejected_prediction_tokens": 0,
        },
    },
    "service_tier": "default",
    "system_fingerprint": None,
}
CHOICE: Path = ("choices", 1)
MESSAGE: Path = ("choices", 1, "message")
USAGE: Path = ("usage",)
PROMPT: Path = ("usage", "prompt_tokens_details")
COMPLETION: Path = ("usage", "completion_tokens_details")


def added_up(events: list[Event]) -> GenerateResponse:
    accumulator = Accumulator()
    accumulator.add(events)
    return accumulator.response()


def translated(answer: dict[str, Any], n: int = 2) -> GenerateResponse:
    return added_up(events_from_whole(answer, call_of(n=n), Provider(), "{}made".format))


def goes(answer: Any, n: int = 2) -> bool:
    return passthrough_answer(orjson.dumps(answer), n) is not None


def check_same(body: bytes, answer: dict[str, Any], n: int = 2) -> None:
    """Check that an answer which goes as it is says what it says when it is translated."""
    passed = passthrough_answer(body, n)
    assert passed is not None
    assert passed.passthrough == body
    response = translated(answer, n)
    if all(choice["message"]["content"] for choice in answer["choices"]):
        at_once = whole_of_texts(body, answer, n)
        assert at_once is not None and at_once.whole == response
        plain = plain_answer(body, n)
        assert plain is not None and plain.usage == passed.usage
        check_plain(plain, response, DIALECT_OPENAI)
    assert completion_told(body) == completion_told(render_completion(response, 1))
    usage = passed.response().usage
    if not usage.HasField("extra"):  # where something in it is billed
        response.usage.ClearField("extra")  # the caller reads it in the answer
    assert usage == response.usage


@each_row(
    ("path", "value"),
    [
        pytest.param((), None, id="what OpenAI answers"),
        pytest.param((*CHOICE, "finish_reason"), "length", id="the tokens ran out"),
        pytest.param((*CHOICE, "finish_reason"), "content_filter", id="a filter ended it"),
        pytest.param((*MESSAGE, "content"), "", id="an empty text"),
        pytest.param((*MESSAGE, "annotations"), GONE, id="no annotations"),
        pytest.param((*MESSAGE, "annotations"), None, id="null for annotations"),
        pytest.param((*MESSAGE, "tool_calls"), None, id="null for a field that says more"),
        pytest.param((*CHOICE, "stop_reason"), None, id="null for a field of vLLM's"),
        pytest.param(("x_groq",), {"id": "r"}, id="a field of the server's own"),
        pytest.param(("service_tier",), GONE, id="no tier"),
        pytest.param(("error",), None, id="null for an error"),
        pytest.param(PROMPT, GONE, id="no details of the prompt's tokens"),
        pytest.param(COMPLETION, None, id="null for details"),
        pytest.param((*PROMPT, "cached_tokens"), 19, id="all from a cache"),
        pytest.param((*PROMPT, "cache_write_tokens"), 15, id="tokens put into a cache"),
        pytest.param((*COMPLETION, "reasoning_tokens"), GONE, id="no count of reasoning"),
    ],
)
def test_an_answer_that_translating_leaves_alone_goes_as_it_is(path: Path, value: Any) -> None:
    answer = changed(OFFICIAL, {path: value} if path else {})
    check_same(orjson.dumps(answer), answer)


@each_row(
    ("path", "value"),
    [
        pytest.param(("id",), "cmpl-1", id="callers are told an id with a prefix"),
        pytest.param(("id",), None, id="an id is made"),
        pytest.param(("object",), "text_completion", id="an object of another name"),
        pytest.param(("object",), GONE, id="callers are told what object it is"),
        pytest.param(("created",), "yesterday", id="a time that is none"),
        pytest.param(("created",), True, id="a time that is no number"),
        pytest.param(("created",), GONE, id="callers are told a time"),
        pytest.param(("model",), "", id="callers are told the model"),
        pytest.param(("model",), 1, id="a model that is no name"),
        pytest.param(("obfuscation",), "x", id="padding is left out"),
        pytest.param(("choices",), [], id="no choice"),
        pytest.param(("choices",), {"0": {}}, id="choices that are no list"),
        pytest.param(CHOICE, GONE, id="fewer choices than were asked for"),
        pytest.param(CHOICE, "x", id="a choice that is no object"),
        pytest.param((*CHOICE, "index"), 0, id="a choice out of its place"),
        pytest.param((*CHOICE, "index"), True, id="an index that is no number"),
        pytest.param((*CHOICE, "index"), GONE, id="callers are told the index"),
        pytest.param((*CHOICE, "finish_reason"), None, id="an answer without an end"),
        pytest.param((*CHOICE, "finish_reason"), "error", id="an end that is a failure"),
        pytest.param((*CHOICE, "finish_reason"), "eos", id="an end with another word for callers"),
        pytest.param((*CHOICE, "finish_reason"), ["stop"], id="an end that is no word"),
        pytest.param((*CHOICE, "finish_reason"), "tool_calls", id="tools that are not there"),
        pytest.param((*CHOICE, "logprobs"), {"content": []}, id="log probabilities"),
        pytest.param((*CHOICE, "logprobs"), GONE, id="callers are told that there are none"),
        pytest.param((*CHOICE, "content_filter_results"), {}, id="a field of Azure's is left out"),
        pytest.param((*CHOICE, "stop_reason"), "END", id="a field of vLLM's is left out"),
        pytest.param(MESSAGE, None, id="no message"),
        pytest.param((*MESSAGE, "role"), "model", id="callers are told that it is the assistant"),
        pytest.param((*MESSAGE, "content"), None, id="no text is told as an empty one"),
        pytest.param((*MESSAGE, "content"), [{"type": "text", "text": "x"}], id="parts"),
        pytest.param((*MESSAGE, "refusal"), "No.", id="a refusal"),
        pytest.param((*MESSAGE, "refusal"), GONE, id="callers are told that it refuses nothing"),
        pytest.param((*MESSAGE, "annotations"), [{}], id="annotations are left out"),
        pytest.param((*MESSAGE, "annotations"), False, id="annotations that are no list"),
        pytest.param((*MESSAGE, "tool_calls"), [], id="an empty list of calls is left out"),
        pytest.param((*MESSAGE, "tool_calls"), [{"id": "1"}], id="calls"),
        pytest.param((*MESSAGE, "function_call"), {"name": "f"}, id="a call of an old kind"),
        pytest.param((*MESSAGE, "audio"), {"id": "a"}, id="audio"),
        pytest.param((*MESSAGE, "reasoning_content"), "hm", id="thinking"),
        pytest.param((*MESSAGE, "reasoning"), "hm", id="thinking by another name"),
        pytest.param((*MESSAGE, "reasoning"), "", id="a field that is left out"),
        pytest.param(USAGE, None, id="callers are told the usage"),
        pytest.param((*USAGE, "prompt_tokens"), GONE, id="a count is missing"),
        pytest.param((*USAGE, "prompt_tokens"), "19", id="a count that is no number"),
        pytest.param((*USAGE, "completion_tokens"), 10.0, id="a count that is no integer"),
        pytest.param((*USAGE, "completion_tokens"), -10, id="a count below zero"),
        pytest.param((*USAGE, "total_tokens"), 30, id="a total of other things"),
        pytest.param((*USAGE, "total_tokens"), 29.0, id="a total that is no integer"),
        pytest.param((*USAGE, "prompt_cache_hit_tokens"), 4, id="a count that is told elsewhere"),
        pytest.param((*USAGE, "queue_time"), 0.1, id="a figure that is left out"),
        pytest.param(PROMPT, [], id="details that are no object"),
        pytest.param((*PROMPT, "cached_tokens"), None, id="a detail that is told as zero"),
        pytest.param((*PROMPT, "cached_tokens"), 20, id="more from the cache than there was"),
        pytest.param((*PROMPT, "cache_write_tokens"), 16, id="more into the cache than there was"),
        pytest.param((*COMPLETION, "reasoning_tokens"), True, id="a detail that is no number"),
    ],
)
def test_any_other_answer_is_translated(path: Path, value: Any) -> None:
    assert goes(OFFICIAL)
    assert not goes(changed(OFFICIAL, {path: value}))


def test_one_answer_is_requested_by_default() -> None:
    one = changed(OFFICIAL, {CHOICE: GONE})
    assert goes(one, 1)
    assert not goes(OFFICIAL, 1)


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
def test_one_choice_is_told_alike_in_every_dialect(reason: str) -> None:
    one = changed(OFFICIAL, {CHOICE: GONE, ("choices", 0, "finish_reason"): reason})
    check_same(orjson.dumps(one), one, 1)


FURTHER: list[Path] = [
    *((*MESSAGE, name) for name in ("tool_calls", "reasoning", "reasoning_content", "audio")),
    *((*CHOICE, name) for name in ("stop_reason", "content_filter_results")),
    *((*USAGE, name) for name in ("prompt_cache_hit_tokens", "cost")),
    *((*PROMPT, "cache_write_tokens"), ("error",), ("obfuscation",)),
]
likely = st.sampled_from(["length", "content_filter", "tool_calls", "chatcmpl-", "chatcmpl-é"])


@settings(max_examples=examples(80))
@given(differing(OFFICIAL, [*spread(OFFICIAL), *FURTHER], likely), formats)
@example(OFFICIAL, {})
def test_passthrough_and_translation_mean_the_same(
    answer: dict[str, Any], form: dict[str, Any]
) -> None:
    body = written(answer, form)
    read = orjson.loads(body)
    if passthrough_answer(body, 2) is not None:
        check_same(body, read)
    else:
        assert plain_answer(body, 2) is None and whole_of_texts(body, read, 2) is None


@pytest.mark.parametrize(
    "changes", [{}, {PROMPT: GONE, COMPLETION: None}, {("service_tier",): GONE, ("new",): [{}]}]
)
def test_usual_answers_are_found_by_one_scan(changes: dict[Path, Any]) -> None:
    assert passthrough_answer(orjson.dumps(changed(OFFICIAL, changes)), 2) is not None


@pytest.mark.parametrize("spoilt", [b"\xff", b"\xed\xa0\x80"])
def test_an_answer_that_is_not_utf_8_is_not_passed_on(spoilt: bytes) -> None:
    body = orjson.dumps(changed(OFFICIAL, {("new",): "é"}))
    assert passthrough_answer(body.replace("é".encode(), spoilt), 2) is None


@pytest.mark.parametrize("medium", ["audio", "image"])
def test_tokens_of_media_are_told_apart(medium: str) -> None:
    answer = changed(OFFICIAL, {(*PROMPT, f"{medium}_tokens"): 2})
    passed = passthrough_answer(orjson.dumps(answer), 2)
    assert passed is not None and isinstance(passed.usage, Usage)
    assert orjson.loads(passed.usage.extra.json)["prompt_tokens_details"][f"{medium}_tokens"] == 2
    check_same(orjson.dumps(answer), answer)


def test_names_of_texts_are_bounded_as_those_of_any_answer() -> None:
    answer = changed(OFFICIAL, {("id",): "chatcmpl-" + "x" * 5_000})
    assert goes(answer)
    assert plain_answer(orjson.dumps(answer), 2) is None
    assert whole_of_texts(orjson.dumps(answer), answer, 2) is None
    with pytest.raises(UpstreamError):
        events_from_whole(answer, call_of(n=2), Provider(), "{}made".format)
