"""Unknown fields of chat completions, passed on or shown as text."""

from typing import Any

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import Citation, Opaque
from gateway.inference.v1.inference_pb2 import Choice, Event
from services.inference.providers.openai.events import events_from_whole
from tests.grid import each_row
from tests.services.inference.providers.openai_answers import (
    Json,
    Provider,
    answer,
    calls,
    chunk,
    data,
    delta,
    read,
    reader_of,
    says,
    told,
    whole,
)
from tests.services.inference.providers.openai_calls import ANTHROPIC, NONE, OPENAI, call_of

DETAIL = {"type": "reasoning.text", "index": 0, "format": "f", "text": "hm"}
CITED = {"type": "url_citation", "url_citation": {"url": "https://a.example"}}
SIGNED = {"google": {"thought_signature": "c2ln"}}


def extra(opaque: Opaque) -> Any:
    assert opaque.dialect == OPENAI
    return orjson.loads(opaque.json)


def only(*chunks: Json, **fields: Any) -> Choice:
    """Return the one choice of a stream that ends behind these chunks."""
    (choice,) = answer(read(*chunks, says("stop"), **fields)).choices
    return choice


def text_of(choice: Choice) -> str:
    return "".join(block.text for block in choice.blocks)


@pytest.mark.parametrize(
    "fields",
    [
        {"annotations": [CITED]},
        {"audio": {"id": "audio_1", "transcript": "hi", "data": "AA==", "expires_at": 1}},
        {"images": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]},
        {"reasoning_details": [DETAIL]},
        {"extra_content": SIGNED},
        {"new": False},
    ],
)
def test_fields_of_a_message_are_kept(fields: Json) -> None:
    assert extra(whole({"role": "assistant", "content": "a", **fields}).choices[0].extra) == fields
    assert extra(only(says(content="a"), says(**fields)).extra) == fields
    assert extra(only(says(role="assistant", content="", **fields)).extra) == fields


def test_what_is_empty_says_nothing() -> None:
    empty = {"annotations": [], "audio": None, "reasoning": "", "x": {}, "content": "a"}
    assert not only(says(**empty)).HasField("extra")
    assert not whole(empty).choices[0].HasField("extra")


def test_fields_of_a_message_are_joined() -> None:
    choice = only(
        says(reasoning="h", reasoning_details=[DETAIL | {"text": "h"}]),
        says(reasoning="m", reasoning_details=[DETAIL | {"text": "m"}]),
        says(content="a", annotations=[CITED]),
        says(annotations=[CITED]),
    )
    assert extra(choice.extra) == {"reasoning_details": [DETAIL], "annotations": [CITED, CITED]}
    assert choice.blocks[0].thinking.text == "hm"


def test_fields_of_a_message_that_recur_are_all_kept() -> None:
    repeated = says(content="a", new=["x"])
    assert extra(only(*[repeated] * 20).extra) == {"new": ["x"] * 20}


def test_fields_of_a_tool_call_are_kept() -> None:
    signed = calls(0, "{}", name="f", id="c1", type="function", extra_content=SIGNED)
    signed["tool_calls"][0]["function"]["v"] = 1
    (block,) = only(says(**signed)).blocks
    assert extra(block.extra) == {"extra_content": SIGNED, "function": {"v": 1}}
    message = {"role": "assistant", "content": None, **signed}
    (block,) = whole(message, finish="tool_calls").choices[0].blocks
    assert extra(block.extra) == {"extra_content": SIGNED, "function": {"v": 1}}
    assert block.tool_use.input == "{}"


def test_fields_of_a_tool_call_may_come_later() -> None:
    begun = says(**calls(0, "{", name="f", id="c1"))
    signed = says(**calls(0, '"a":1', extra_content=SIGNED))
    (block,) = only(begun, signed, signed, says(**calls(0, "}", n=2))).blocks
    assert extra(block.extra) == {"extra_content": SIGNED, "n": 2}
    assert block.tool_use.input == '{"a":1"a":1}'


def test_fields_of_a_call_that_waits_begin_with_it() -> None:
    first, second = calls(0, "{", name="f", id="a"), calls(1, "{}", name="g", id="b", n=1)
    choice = only(says(**first), says(**second), says(**calls(0, "}")))
    assert [block.HasField("extra") for block in choice.blocks] == [False, True]


def test_fields_of_a_choice_are_kept() -> None:
    def piece(finish: str | None = None, **fields: Any) -> Json:
        return chunk({**delta(0, finish, content="a"), **fields})

    chunks = [piece(flags={"hate": 1}, native_finish_reason=None) for _ in range(9)]
    last = piece("stop", native_finish_reason="STOP", stop_reason=128001)
    events = read(*chunks, piece(flags={"hate": 2}), last)
    assert [kind for kind, _ in told(events)].count("extra_fields") == 2
    assert extra(answer(events).choices[0].finish.extra) == {
        "flags": {"hate": 2},
        "native_finish_reason": "STOP",
        "stop_reason": 128001,
    }


def test_lists_of_a_choice_are_sent_each_time() -> None:
    chunks = [chunk({**delta(content=text), "token_ids": [7]}) for text in "abcdefghij"]
    events = read(*chunks, says("stop"))
    assert [kind for kind, _ in told(events)].count("extra_fields") == 10


def test_fields_of_the_answer_are_kept_whenever_they_come() -> None:
    def piece(**fields: Any) -> Json:
        return chunk(delta(content="a"), system_fingerprint="fp", **fields)

    early = {"choices": [], "prompt_filter_results": [{"x": 1}]}
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    rest = [piece()] * 9 + [piece(citations=["u"])] * 9 + [piece(provider="p")]
    events = read(early, *rest, says("stop"), chunk(usage=usage, timings={"ms": 1}))
    assert extra(events[0].start.extra) == {"system_fingerprint": "fp"}
    assert [kind for kind, _ in told(events)].count("extra_fields") == 4
    assert extra(answer(events).extra) == {
        "system_fingerprint": "fp",
        "prompt_filter_results": [{"x": 1}],
        "citations": ["u"],
        "provider": "p",
        "timings": {"ms": 1},
    }


def test_what_usage_has_no_name_for_is_kept() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.5, "cost_details": {"a": 1}}
    events = read(says("stop", content="a"), chunk(usage=usage))
    assert extra(answer(events).usage.extra) == {"cost": 0.5, "cost_details": {"a": 1}}


def test_the_provider_s_name_for_thoughts_is_kept() -> None:
    fields = [
        only(says(**{name: "hm"}), says(content="a")).blocks[0].thinking.field
        for name in ("reasoning", "reasoning_content")
    ]
    assert fields == ["reasoning", ""]


def test_thoughts_in_details_alone_are_thoughts() -> None:
    summary = {"type": "reasoning.summary", "summary": "so", "index": 1}
    sealed = {"type": "reasoning.encrypted", "data": "x"}
    choice = only(says(reasoning_details=[DETAIL, summary, sealed]), says(content="a"))
    assert choice.blocks[0].thinking.text == "hmso"


def test_parts_without_a_name_are_kept_in_their_place() -> None:
    part = {"type": "reference", "reference_ids": [1]}
    choice = only(says(content="a"), says(content=[part]), says(content="b"))
    assert [block.WhichOneof("kind") for block in choice.blocks] == ["text", "opaque", "text"]
    assert extra(choice.blocks[1].opaque) == part
    begun = says(**calls(0, "{", name="f", id="c"))
    choice = only(begun, says(content=[part]), says(**calls(0, "}")))
    assert [block.WhichOneof("kind") for block in choice.blocks] == ["tool_use", "opaque"]


@each_row("dialect", [ANTHROPIC, NONE])
@each_row(
    ("fields", "text"),
    [
        ({"audio": {"id": "x", "transcript": "Hello", "data": "AA=="}}, "Hello"),
        (
            {"images": [{"type": "image_url", "image_url": {"url": "https://a.example/b"}}]},
            "![image](https://a.example/b)",
        ),
        (
            {"images": [{"image_url": {"url": "data:image/png;base64,AAAA"}}]},
            "[An image (image/png) that this endpoint cannot show; chat completions do.]",
        ),
        (
            {"content": [{"type": "image_url", "image_url": "https://a.example/b"}]},
            "![image](https://a.example/b)",
        ),
        (
            {"hologram": {"x": 1}, "content": [{"type": "smell"}]},
            "[The model answered with hologram, smell, which this endpoint cannot show.]",
        ),
    ],
)
def test_callers_of_another_dialect_are_never_answered_nothing(
    fields: Json, text: str, dialect: Any
) -> None:
    assert text_of(whole({"role": "assistant", **fields}, dialect=dialect).choices[0]) == text
    assert text_of(only(says(**fields), dialect=dialect)) == text
    assert text_of(only(says(**fields))) == "", "it is told as it is"


def test_a_transcript_that_comes_in_pieces_is_one_text() -> None:
    pieces = [says(audio={"id": "x", "transcript": text}) for text in ("He", "llo")]
    (block,) = only(*pieces, dialect=ANTHROPIC).blocks
    assert block.text == "Hello"


def test_an_answer_with_text_says_nothing_of_what_is_beside_it() -> None:
    fields = {"hologram": 1, "reasoning_details": [DETAIL]}
    assert text_of(only(says(content="a", **fields), dialect=ANTHROPIC)) == "a"
    sealed = {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}
    assert text_of(only(says(**sealed), dialect=ANTHROPIC)) == ""


def test_content_begins_with_what_says_something() -> None:
    reader = reader_of()
    out: list[Event] = []
    reader.feed(data(says(role="assistant", content="", annotations=[])), out)
    assert not reader.has_content
    reader.feed(data(chunk(delta(), provider="p")), out)
    assert not reader.has_content
    reader.feed(data(says(reasoning_details=[DETAIL | {"text": ""}])), out)
    assert reader.has_content


def test_a_whole_answer_and_its_stream_add_up_to_the_same() -> None:
    message = {"content": "a", "reasoning_details": [DETAIL], "annotations": [CITED]}
    streamed = only(says(**message))
    events = events_from_whole(
        chunk({"index": 0, "message": message, "finish_reason": "stop"}),
        call_of(),
        Provider(),
        lambda kind: kind,
    )
    assert answer(events).choices[0] == streamed


def test_pages_of_a_text_are_citations_in_other_dialects() -> None:
    place = {"start_index": 2, "end_index": 4, "title": "A"}
    cited = {"type": "url_citation", "url_citation": {**CITED["url_citation"], **place}}
    broken = {"url_citation": {**cited["url_citation"], "end_index": 1}}
    expected = Citation(url="https://a.example", title="A", start_index=2, end_index=4)
    of_all = [
        Citation(url="https://a.example", end_index=6),
        Citation(url="https://a.example", title="A", end_index=6),
    ]
    for dialect in (ANTHROPIC, NONE):
        cites = says(annotations=[1, CITED, broken, cited])
        streamed = only(says(content="See"), says(content=" it"), cites, dialect=dialect)
        assert list(streamed.blocks[0].citations) == [*of_all, expected]
    message = {"role": "assistant", "content": "See it", "annotations": [cited]}
    (block,) = whole(message, dialect=ANTHROPIC).choices[0].blocks
    assert list(block.citations) == [expected]
    called = calls(0, "{}", name="f", id="c1")
    (text, _) = only(
        says(content="See"), says(**called), says(annotations=[cited]), dialect=NONE
    ).blocks
    assert not text.citations
