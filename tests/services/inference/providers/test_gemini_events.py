"""Gemini's answers as canonical events."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facade.dialects.anthropic.parts import block_json, raw_json
from gateway.conversation.v1 import conversation_pb2 as pb
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import (
    Choice,
    Event,
    GenerateRequest,
    GenerateResponse,
    ThinkingConfig,
)
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers import failures
from services.inference.providers.base import Call, Target
from services.inference.providers.gemini.events import AnswerReader
from services.inference.stream.accumulator import Accumulator
from tests.grid import each_row
from tests.services.inference.providers.gemini_answers import (
    CALL,
    CHUNKS,
    PICTURE,
    USAGE,
    WHOLE,
    chunk,
    text,
    wire,
)

OPENAI, ANTHROPIC = pb.DIALECT_OPENAI, pb.DIALECT_ANTHROPIC
NONE = pb.DIALECT_UNSPECIFIED


class Upstream:
    """The provider for errors and limits of a stream."""

    name = "google"

    def __init__(self, **limits: int) -> None:
        self.limits = Limits.model_validate(limits)

    def in_band(self, body: bytes) -> UpstreamError:
        return failures.in_band(self.name, body)


def new_id(prefix: str) -> str:
    return f"{prefix}new"


def call_of(dialect: int, n: int, thinking: ThinkingConfig | None = None) -> Call:
    request = GenerateRequest(
        dialect=dialect,
        n=n,
        thinking=thinking,
        ends_with_text=dialect == ANTHROPIC,
        requires_single_text=dialect == OPENAI,
    )
    return Call(request, Target("m", "google", "gemini-x"), True)


def folded(events: list[Event]) -> GenerateResponse:
    accumulator = Accumulator()
    accumulator.add(events)
    return accumulator.response()


def whole(answer: Any, dialect: int = OPENAI, n: int = 1, **limits: int) -> GenerateResponse:
    names = {"_1st_x": "1st"}
    events: list[Event] = []
    reader = AnswerReader(call_of(dialect, n), Upstream(**limits), names, new_id)
    reader.read_whole(answer, events)
    return folded(events)


def streamed(
    *pieces: bytes, dialect: int = OPENAI, thinking: ThinkingConfig | None = None
) -> GenerateResponse:
    reader = AnswerReader(call_of(dialect, 1, thinking), Upstream(), {}, new_id)
    events: list[Event] = []
    for piece in pieces:
        reader.feed(piece.replace(b"\r\n", b"\n"), events)
    reader.end(events)
    return folded(events)


def only(response: GenerateResponse) -> Choice:
    (choice,) = response.choices
    return choice


def kinds(response: GenerateResponse) -> list[str]:
    return [block.WhichOneof("kind") or "" for block in only(response).blocks]


def own(opaque: pb.Opaque) -> Any:
    return orjson.loads(opaque.json) if opaque.json else {}


def failure(answer: Any, **rest: Any) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        whole(answer, **rest)
    return raised.value


def test_an_answer_has_its_name_and_its_tokens() -> None:
    response = whole(chunk(text("Hello"), finish="STOP"))
    assert (response.id, response.model) == ("r-1", "gemini-3-flash")
    assert response.usage == pb.Usage(
        input_tokens=8, output_tokens=8, cache_read_input_tokens=4, reasoning_tokens=3
    )


def test_names_that_are_left_out_are_made() -> None:
    answer = chunk(text("x"), finish="STOP")
    del answer["responseId"], answer["modelVersion"]
    response = whole(answer)
    assert (response.id, response.model) == ("gemini-new", "gemini-x")


def test_a_whole_answer_loses_nothing() -> None:
    response = whole(WHOLE)
    blocks = only(response).blocks
    assert kinds(response) == ["thinking", "text", "tool_use", "tool_use"]
    assert (blocks[0].thinking.text, blocks[1].text) == ("hm", "Hello")
    assert (blocks[2].tool_use.id, blocks[2].tool_use.name) == ("c1", "f")
    assert (blocks[2].tool_use.input, blocks[3].tool_use.input) == ('{"a":1}', "{}")
    assert blocks[3].tool_use.id == "call_new"
    further = own(only(response).extra)
    assert further["images"][0]["image_url"]["url"] == "data:image/png;base64,AAE="
    assert "executableCode" in further["extra_content"]["google"]["parts"][0]
    finish = only(response).finish
    assert finish.reason == pb.FINISH_REASON_TOOL_USE
    told = own(finish.extra)["extra_content"]["google"]
    assert set(told) == {"finishMessage", "citationMetadata"}
    logprobs = orjson.loads(only(response).logprobs)
    assert logprobs["content"][0]["logprob"] == -0.5
    assert logprobs["content"][0]["top_logprobs"][0]["token"] == "Ho"


def test_a_stream_adds_up_and_ends_with_the_stream() -> None:
    response = streamed(wire(*CHUNKS))
    assert kinds(response) == ["thinking", "text", "tool_use"]
    assert [b.text for b in only(response).blocks if b.text] == ["Hello"]
    assert only(response).finish.reason == pb.FINISH_REASON_TOOL_USE
    assert response.usage.output_tokens == 8


@settings(deadline=None, max_examples=50)
@given(st.lists(st.booleans(), min_size=5, max_size=5))
def test_it_does_not_matter_how_a_stream_is_cut_into_reads(cuts: list[bool]) -> None:
    pieces, last = [], b""
    for one, ends in zip(CHUNKS, [*cuts, True], strict=True):
        last += wire(one)
        if ends:
            pieces.append(last)
            last = b""
    assert streamed(*pieces) == streamed(wire(*CHUNKS))


def test_a_reason_in_every_event_ends_nothing() -> None:
    response = streamed(wire(chunk(text("a"), finish="STOP"), chunk(text("b"), finish="STOP")))
    assert only(response).blocks[0].text == "ab"


def test_usage_may_come_by_itself_at_the_end() -> None:
    last = {"usageMetadata": {**USAGE, "candidatesTokenCount": 50}}
    response = streamed(wire(chunk(text("a"), finish="STOP"), last))
    assert response.usage.output_tokens == 53


class TestSignatures:
    def test_a_chat_gets_that_of_a_call_where_google_puts_it(self) -> None:
        (block,) = only(whole(chunk(CALL, finish="STOP"))).blocks
        google = {"thought_signature": "Y2FsbA==", "api": "generateContent"}
        extra = {"extra_content": {"google": google}}
        assert own(block.extra) == extra

    def test_others_get_that_of_a_call_in_redacted_thinking(self) -> None:
        response = whole(chunk(text("I call."), CALL, finish="STOP"), ANTHROPIC)
        assert kinds(response) == ["text", "redacted_thinking", "tool_use"]
        assert only(response).blocks[1].redacted_thinking == "call:Y2FsbA=="

    def test_or_in_the_thinking_before_it(self) -> None:
        response = whole(chunk(text("hm", thought=True), CALL, finish="STOP"), ANTHROPIC)
        assert kinds(response) == ["thinking", "tool_use"]
        assert only(response).blocks[0].thinking.signature == "call:Y2FsbA=="

    def test_thinking_with_one_of_its_own_keeps_it(self) -> None:
        thought = text("hm", thought=True, thoughtSignature="dGhv")
        response = whole(chunk(thought, CALL, finish="STOP"), ANTHROPIC)
        assert kinds(response) == ["thinking", "redacted_thinking", "tool_use"]
        assert only(response).blocks[0].thinking.signature == "thought:dGhv"

    @pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC, NONE])
    def test_that_of_a_text_comes_after_it(self, dialect: int) -> None:
        adaptive = ThinkingConfig(mode=ThinkingConfig.MODE_ADAPTIVE)
        response = streamed(wire(*CHUNKS), dialect=dialect, thinking=adaptive)
        if dialect == OPENAI:
            told = own(only(response).extra)["extra_content"]["google"]
            assert told["thought_signature"] == "dGV4dA=="
        elif dialect == ANTHROPIC:
            # Claude Code prints nothing of an answer that ends with anything but text.
            hidden = [block.redacted_thinking for block in only(response).blocks]
            assert "text:dGV4dA==" not in hidden
        else:
            last = only(response).blocks[-1]
            assert last.redacted_thinking == "text:dGV4dA=="

    @pytest.mark.parametrize("thinking", [None, ThinkingConfig(mode=ThinkingConfig.MODE_DISABLED)])
    def test_who_asked_for_no_thinking_is_not_shown_that_of_a_text(
        self, thinking: ThinkingConfig | None
    ) -> None:
        last = chunk(text("", thoughtSignature="dGV4dA=="), finish="STOP")
        response = streamed(wire(chunk(text("a")), last), dialect=NONE, thinking=thinking)
        assert kinds(response) == ["text"]

    def test_what_cannot_be_one_goes(self) -> None:
        call = {**CALL, "thoughtSignature": "no base64!"}
        assert kinds(whole(chunk(call, finish="STOP"), ANTHROPIC)) == ["tool_use"]


def test_pictures_in_each_dialect() -> None:
    answer = chunk(PICTURE, finish="STOP")
    for dialect in (ANTHROPIC, NONE):
        (plain,) = only(whole(answer, dialect)).blocks
        assert (plain.media.data, plain.media.mime_type) == (b"\0\1", "image/png")
        source = {"type": "base64", "media_type": "image/png", "data": "AAE="}
        assert block_json(plain) == {"type": "image", "source": source}


def test_parts_without_a_name_are_blocks_of_messages() -> None:
    part = {"partOfTomorrow": {"of": "Google"}}
    (block,) = only(whole(chunk(part, finish="STOP"), ANTHROPIC)).blocks
    shown = orjson.loads(orjson.dumps(raw_json(block.opaque)))
    assert shown == {**part, "type": "google_part"}


def test_a_name_that_was_changed_is_given_back() -> None:
    call = {"functionCall": {"name": "_1st_x", "args": {}}}
    assert only(whole(chunk(call, finish="STOP"))).blocks[0].tool_use.name == "1st"


@each_row(
    ("theirs", "reason"),
    [
        ("STOP", pb.FINISH_REASON_END_TURN),
        ("MAX_TOKENS", pb.FINISH_REASON_MAX_TOKENS),
        ("SAFETY", pb.FINISH_REASON_REFUSAL),
        ("RECITATION", pb.FINISH_REASON_REFUSAL),
        ("PROHIBITED_CONTENT", pb.FINISH_REASON_REFUSAL),
        ("IMAGE_SAFETY", pb.FINISH_REASON_REFUSAL),
        ("OTHER", pb.FINISH_REASON_END_TURN),
        ("SOMETHING_NEW", pb.FINISH_REASON_END_TURN),
    ],
)
def test_reasons_to_finish(theirs: str, reason: int) -> None:
    finish = only(whole(chunk(text("a"), finish=theirs))).finish
    assert finish.reason == reason
    told = own(finish.extra).get("extra_content", {}).get("google", {})
    assert told == ({} if theirs in ("STOP", "MAX_TOKENS") else {"finishReason": theirs})


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        ("STOP", pb.FINISH_REASON_TOOL_USE),
        ("FUNCTION_CALL", pb.FINISH_REASON_TOOL_USE),
        ("SOMETHING_NEW", pb.FINISH_REASON_TOOL_USE),
        ("MAX_TOKENS", pb.FINISH_REASON_MAX_TOKENS),
        ("SAFETY", pb.FINISH_REASON_REFUSAL),
    ],
)
def test_reasons_to_finish_after_a_call(theirs: str, reason: int) -> None:
    assert only(whole(chunk(CALL, finish=theirs))).finish.reason == reason


@pytest.mark.parametrize("theirs", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_nobody_can_read_is_a_failure(theirs: str) -> None:
    error = failure(chunk(text("a"), finish=theirs))
    assert Reason.Name(error.reason) == "REASON_UPSTREAM_ERROR"
    assert theirs in error.message


def test_a_blocked_prompt_is_reported_as_such() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE}
    error = failure(blocked)
    assert Reason.Name(error.reason) == "REASON_CONTENT_FILTER"
    assert error.message.endswith("blocked the prompt (SAFETY)")
    with pytest.raises(UpstreamError) as raised:
        streamed(wire(blocked))
    assert raised.value.reason == error.reason


@pytest.mark.parametrize(
    "answer",
    [{}, {"candidates": []}, chunk(text("a")), {"candidates": [{"finishReason": ""}]}],
)
def test_an_answer_without_an_end_is_cut_off(answer: Any) -> None:
    assert Reason.Name(failure(answer).reason) == "REASON_UPSTREAM_CONNECTION"


def test_choices_that_were_asked_for() -> None:
    answer = chunk(text("a"), finish="STOP")
    other = chunk(text("b"), finish="STOP", index=1)
    answer["candidates"] += other["candidates"]
    assert [choice.blocks[0].text for choice in whole(answer, n=2).choices] == ["a", "b"]
    assert Reason.Name(failure(answer, n=1).reason) == "REASON_UPSTREAM_ERROR"
    assert Reason.Name(failure(other, n=2).reason) == "REASON_UPSTREAM_ERROR"


def test_an_error_in_a_stream_is_reported_with_its_wait() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}]
    error = {"code": 429, "message": "Quota.", "status": "RESOURCE_EXHAUSTED", "details": details}
    with pytest.raises(UpstreamError) as raised:
        streamed(wire(chunk(text("a")), {"error": error}))
    assert Reason.Name(raised.value.reason) == "REASON_UPSTREAM_RATE_LIMITED"
    assert raised.value.retry_after_s == 8


def test_parts_are_bounded() -> None:
    parts = [{"functionCall": {"name": "f"}}] * 17
    error = failure(chunk(*parts, finish="STOP"), max_answer_parts=16)
    assert error.limit == "limits.max_answer_parts"
