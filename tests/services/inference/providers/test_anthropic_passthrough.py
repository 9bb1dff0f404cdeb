"""Which messages go as they are: those that say the same when they are translated."""

from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from facade.dialects.anthropic import render_message
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.inference.providers.anthropic.events import events_from_whole
from services.inference.providers.anthropic.passthrough import (
    passthrough_answer,
    plain_answer,
    whole_of_text,
)
from services.inference.stream.accumulator import Accumulator
from tests.grid import each_row
from tests.passthrough_answers import message_told
from tests.services.inference.providers.anthropic_answers import CITATION, Provider
from tests.services.inference.providers.changes import (
    GONE,
    Path,
    changed,
    differing,
    formats,
    spread,
    written,
)
from tests.services.inference.providers.plain_answers import check_plain
from tests.thoroughness import examples

# As Anthropic answers, with every field it has.
OFFICIAL = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-1",
    "content": [
        {"type": "text", "text": "Hi ☕", "citations": None},
        {"type": "text", "text": "c", "citations": [CITATION]},
    ],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "stop_details": None,
    "container": None,
    "usage": {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": 3,
        "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 0},
        "output_tokens_details": {"thinking_tokens": 4},
        "server_tool_use": None,
        "service_tier": "standard",
    },
}
BLOCK: Path = ("content", 1)
USAGE: Path = ("usage",)
DETAILS: Path = ("usage", "output_tokens_details")


def translated(answer: dict[str, Any]) -> GenerateResponse:
    accumulator = Accumulator()
    accumulator.add(events_from_whole(answer, Provider()))
    return accumulator.response()


def goes(answer: Any) -> bool:
    return passthrough_answer(orjson.dumps(answer)) is not None


def check_same(body: bytes, answer: dict[str, Any]) -> None:
    """Check that an answer which goes as it is says what it says when it is translated."""
    passed = passthrough_answer(body)
    assert passed is not None
    assert passed.passthrough == body
    response = translated(answer)
    assert message_told(body) == message_told(render_message(response))
    usage = passed.response().usage
    if not usage.HasField("extra"):  # where something in it is billed
        response.usage.ClearField("extra")  # the caller reads it in the answer
    assert usage == response.usage


STOPPED = {("stop_reason",): "stop_sequence", ("stop_sequence",): "END"}


@each_row(
    "changes",
    [
        pytest.param({}, id="what Anthropic answers"),
        *(
            pytest.param({("stop_reason",): reason}, id=reason)
            for reason in (
                "max_tokens",
                "refusal",
                "pause_turn",
                "model_context_window_exceeded",
            )
        ),
        pytest.param(STOPPED, id="stop_sequence"),
        pytest.param({("content",): []}, id="nothing was said"),
        pytest.param({(*BLOCK, "citations"): GONE}, id="no citations"),
        pytest.param({("container",): {"id": "c"}}, id="a container"),
        pytest.param({("stop_details",): {"type": "x"}}, id="details of the end"),
        pytest.param({("brand_new",): {"a": None}}, id="a field that is new"),
        pytest.param({("error",): None}, id="null for an error"),
        pytest.param({DETAILS: GONE}, id="no details of usage"),
        pytest.param({DETAILS: None}, id="null for details"),
        pytest.param({(*DETAILS, "thinking_tokens"): 0}, id="no thinking"),
        pytest.param({(*USAGE, "brand_new"): 1.5}, id="a figure that is new"),
    ],
)
def test_an_answer_that_translating_leaves_alone_goes_as_it_is(changes: dict[Path, Any]) -> None:
    answer = changed(OFFICIAL, changes)
    check_same(orjson.dumps(answer), answer)


@each_row(
    "changes",
    [
        pytest.param({("id",): "chatcmpl-1"}, id="callers are told an id with a prefix"),
        pytest.param({("id",): None}, id="no id"),
        pytest.param({("model",): ""}, id="no model"),
        pytest.param({("model",): 1}, id="a model that is no name"),
        pytest.param({("type",): "completion"}, id="callers are told that it is a message"),
        pytest.param({("role",): GONE}, id="callers are told that it is the assistant"),
        pytest.param({("content",): "Hi"}, id="content that is no list"),
        pytest.param({BLOCK: "Hi"}, id="a block that is no object"),
        pytest.param({(*BLOCK, "text"): ""}, id="an empty text is left out"),
        pytest.param({(*BLOCK, "text"): None}, id="no text"),
        pytest.param(
            {BLOCK: {"type": "thinking", "thinking": "hm", "signature": "AAA="}}, id="thinking"
        ),
        pytest.param({BLOCK: {"type": "tool_use", "id": "t", "name": "f"}}, id="a call"),
        pytest.param({("stop_reason",): None}, id="an answer without an end"),
        pytest.param({("stop_reason",): "tool_use"}, id="tools that are not there"),
        pytest.param({("stop_reason",): "brand_new"}, id="an end that is not known"),
        pytest.param({("stop_reason",): ["end_turn"]}, id="an end that is no word"),
        pytest.param({("stop_sequence",): GONE}, id="callers are told that no string stopped it"),
        pytest.param({("stop_sequence",): "END"}, id="a string that stopped nothing"),
        pytest.param(STOPPED | {("stop_sequence",): None}, id="a string that is not told"),
        pytest.param(STOPPED | {("stop_sequence",): ""}, id="an empty string is told as null"),
        pytest.param({USAGE: None}, id="no usage"),
        pytest.param({(*USAGE, "input_tokens"): GONE}, id="a count is missing"),
        pytest.param({(*USAGE, "output_tokens"): True}, id="a count that is no number"),
        pytest.param({(*USAGE, "output_tokens"): 5.0}, id="a count that is no integer"),
        pytest.param({(*USAGE, "output_tokens"): -5}, id="a count below zero"),
        pytest.param({(*USAGE, "input_tokens"): 2**63}, id="more than anybody counts"),
        pytest.param({(*USAGE, "cache_read_input_tokens"): None}, id="callers are told zero"),
        pytest.param({(*USAGE, "cache_creation_input_tokens"): GONE}, id="callers are told a zero"),
        pytest.param({DETAILS: 4}, id="details that are no object"),
        pytest.param({(*DETAILS, "other"): 4}, id="a detail that is left out"),
        pytest.param({(*DETAILS, "thinking_tokens"): "4"}, id="a detail that is no number"),
    ],
)
def test_any_other_answer_is_translated(changes: dict[Path, Any]) -> None:
    assert goes(OFFICIAL)
    assert not goes(changed(OFFICIAL, changes))


likely = st.sampled_from(["stop_sequence", "max_tokens", "tool_use", "msg_", "msg_é", "text"])


ONE_TEXT = changed(OFFICIAL, {("content",): [{"type": "text", "text": "Hi ☕"}]})


@settings(max_examples=examples(80))
@given(differing(ONE_TEXT, [*spread(ONE_TEXT), ("brand_new",)], likely))
@example(changed(ONE_TEXT, {USAGE: {**OFFICIAL["usage"], "service_tier": "x" * (16 << 10)}}))
@example(changed(ONE_TEXT, STOPPED))
@example(ONE_TEXT)
def test_one_text_is_read_at_once_as_its_translation(answer: dict[str, Any]) -> None:
    body = orjson.dumps(answer)
    at_once = whole_of_text(body, answer)
    if at_once is not None:
        assert at_once.whole == translated(answer)
    plain = plain_answer(body)
    if plain is not None:
        check_plain(plain, translated(answer), DIALECT_ANTHROPIC)


@pytest.mark.parametrize(
    "changes",
    [{}, STOPPED, *({("stop_reason",): reason} for reason in ("refusal", "max_tokens"))],
)
def test_usual_answers_are_read_at_once(changes: dict[Path, Any]) -> None:
    answer = changed(ONE_TEXT, changes)
    assert whole_of_text(orjson.dumps(answer), answer) is not None
    plain = plain_answer(orjson.dumps(answer))
    assert plain is not None
    check_plain(plain, translated(answer), DIALECT_ANTHROPIC)


@settings(max_examples=examples(80))
@given(differing(OFFICIAL, [*spread(OFFICIAL), ("error",)], likely), formats)
@example(OFFICIAL, {})
def test_passthrough_and_translation_mean_the_same(
    answer: dict[str, Any], form: dict[str, Any]
) -> None:
    body = written(answer, form)
    read = orjson.loads(body)
    if passthrough_answer(body) is not None:
        check_same(body, read)
    else:
        assert plain_answer(body) is None and whole_of_text(body, read) is None


@pytest.mark.parametrize(
    "changes",
    [
        {("content",): OFFICIAL["content"]},
        {("content", 0, "citations"): [CITATION]},
        {("id",): "msg_" + "x" * 5_000},
        {("model",): "x" * 5_000},
    ],
)
def test_further_answers_are_translated_for_others(changes: dict[Path, Any]) -> None:
    answer = changed(ONE_TEXT, changes)
    assert goes(answer)
    assert plain_answer(orjson.dumps(answer)) is None


def test_a_text_that_is_cited_nowhere_is_read_at_once() -> None:
    for citations in (None, []):
        answer = changed(ONE_TEXT, {("content", 0, "citations"): citations})
        assert plain_answer(orjson.dumps(answer)) is not None


@pytest.mark.parametrize("spoilt", [b"\xff", b"\xed\xa0\x80"])
def test_a_message_that_is_not_utf_8_is_not_passed_on(spoilt: bytes) -> None:
    body = orjson.dumps(changed(ONE_TEXT, {("brand_new",): "é"}))
    assert passthrough_answer(body.replace("é".encode(), spoilt)) is None
