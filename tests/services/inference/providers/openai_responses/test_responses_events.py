"""Canonical events of OpenAI's responses."""

import random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from gateway.conversation.v1.conversation_pb2 import FinishReason
from gateway.inference.v1.inference_pb2 import Event
from services.common.settings import Limits
from services.inference.providers.openai_responses.events import StreamReader, events_from_whole
from services.inference.providers.sse import SseSplitter
from tests.grid import each_row
from tests.services.inference.providers.openai_responses.responses_answers import (
    USAGE,
    Provider,
    answer,
    both,
    custom_call,
    data,
    events_of,
    events_of_item,
    failure_of,
    fields_in,
    function_call,
    handed_on,
    kinds_of,
    message,
    native_reader_of,
    natives,
    read,
    reader_of,
    reason_of,
    reasoning,
    refusal,
    response,
    said_in,
    search,
    streamed,
    text,
    whole,
)
from tests.services.inference.providers.openai_responses.responses_calls import (
    RESPONSES,
    Json,
    call_of,
)
from tests.thoroughness import examples

CITATION = {"type": "url_citation", "start_index": 0, "end_index": 2, "title": "t", "url": "u"}
TOKEN = {"token": "Hi", "bytes": [72, 105], "logprob": 0.0, "top_logprobs": []}
SDK_EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


def finish_of(found: Any) -> str:
    return FinishReason.Name(found.choices[0].finish.reason).removeprefix("FINISH_REASON_")


def test_a_text_comes_as_it_is_written() -> None:
    events = read(*events_of(response(message(text("Hello")))))
    assert kinds_of(events) == [
        *("start", "block_start", "text", "text", "block_stop", "usage", "finish")
    ]
    assert [event.text for event in events[2:4]] == ["Hel", "lo"]
    assert (events[0].start.id, events[0].start.model) == ("resp_1", "gpt-1-0613")


def test_what_the_tests_stream_are_events_of_the_sdk() -> None:
    items = (reasoning("a"), message(text("b"), refusal("c")), function_call(), custom_call("d"))
    for event in events_of(response(*items, search(), parallel_tool_calls=True, tools=[],
                                    tool_choice="auto")):  # fmt: skip
        if ".delta" in event["type"] or ".done" in event["type"]:
            event = {"logprobs": [], "name": "f", **event}
        SDK_EVENT.validate_python(event)


def test_texts_and_refusals_of_a_message_are_blocks() -> None:
    found = both(message(text("Hi", annotations=[CITATION]), refusal("No"), phase="final_answer"))
    first, second = found.choices[0].blocks
    assert (first.text, second.refusal) == ("Hi", "No")
    assert fields_in(first.extra.json) == {"annotations": [CITATION]}
    assert fields_in(found.choices[0].extra.json) == {"phase": "final_answer"}
    assert finish_of(found) == "REFUSAL"


def test_thoughts_are_signed_by_their_encrypted_content() -> None:
    item = reasoning("a", "b", encrypted_content="gAAAAA-_")
    found = both(item, message(text("Hi")))
    thought = found.choices[0].blocks[0]
    assert (thought.thinking.text, thought.thinking.signature) == ("a\n\nb", "gAAAAA-_")
    assert thought.extra.dialect == RESPONSES
    assert {"type": "reasoning", **fields_in(thought.extra.json)} == item


def test_thoughts_in_full_are_read_as_their_summary_is() -> None:
    content = [{"type": "reasoning_text", "text": one} for one in ("x", "y")]
    found = both(reasoning(content=content))
    assert found.choices[0].blocks[0].thinking.text == "x\n\ny"


def test_calls_keep_their_ids_and_other_fields() -> None:
    found = both(
        function_call('{"a": 1}', namespace="n"), function_call("", call_id="call_3", id="fc_3"),
        custom_call("1+1"),
    )  # fmt: skip
    one, two, three = (block.tool_use for block in found.choices[0].blocks)
    assert (one.id, one.name, one.input) == ("call_1", "f", '{"a": 1}')
    assert two.input == "{}"
    assert (three.input, three.freeform) == ("1+1", True)
    extra = fields_in(found.choices[0].blocks[0].extra.json)
    assert extra == {"id": "fc_1", "namespace": "n"}
    assert finish_of(found) == "TOOL_USE"


def test_other_items_are_kept_whole() -> None:
    found = both(search(), message(text("Hi")))
    assert fields_in(found.choices[0].blocks[0].opaque.json) == search()
    assert finish_of(found) == "END_TURN"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("max_output_tokens", "MAX_TOKENS"),
        ("content_filter", "REFUSAL"),
        ("steered", "END_TURN"),
    ],
)
def test_an_incomplete_answer_says_why(reason: str, finish: str) -> None:
    details = {"reason": reason}
    cut = function_call('{"a', status="incomplete")
    found = both(message(text("H")), cut, status="incomplete", incomplete_details=details)
    assert finish_of(found) == finish
    extra = found.choices[0].finish.extra
    assert fields_in(extra.json) == {"incomplete_details": details}
    assert fields_in(found.choices[0].blocks[1].extra.json)["status"] == "incomplete"


def test_usage_tells_cached_and_reasoning_tokens() -> None:
    further = {**USAGE, "input_tokens_details": {"cached_tokens": 4, "new_tokens": 2}, "cost": 1}
    usage = both(message(text("Hi")), usage=further).usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (6, 4, 7)
    assert usage.reasoning_tokens == 3
    assert fields_in(usage.extra.json) == {"cost": 1, "input_tokens_details": {"new_tokens": 2}}
    assert both(message(text("Hi"))).usage.cache_creation_input_tokens == 1


def test_fields_of_the_response_are_kept_as_they_are_at_its_end() -> None:
    given = response(message(text("Hi")), content_filters=[{"a": 1}], temperature=1.0)
    events = events_of(given)
    events[0] = {**events[0], "response": {**events[0]["response"], "service_tier": "auto"}}
    extra = fields_in(answer(read(*events)).extra.json)
    assert extra == {"service_tier": "default", "content_filters": [{"a": 1}], "temperature": 1.0}


def test_log_probabilities_go_with_their_text() -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1",
             "content_index": 0, "delta": "Hi", "logprobs": [TOKEN]}  # fmt: skip
    item = message(text("Hi", logprobs=[TOKEN]))
    added, part, *_, done, over = events_of_item(0, item)
    events = read(*events_of(response(item), [added, part, delta, done, over]))
    assert fields_in(events[2].logprobs) == {"content": [TOKEN]}
    assert answer(events).choices[0].logprobs == whole(item).choices[0].logprobs


def test_events_without_a_name_are_passed_on() -> None:
    keepalive = {"type": "keepalive", "sequence_number": 9}
    events = read(*events_of(response(search(), message(text("Hi")))), keepalive)
    unknown = [fields_in(event.unknown.json) for event in events if event.HasField("unknown")]
    assert [one["type"] for one in unknown] == ["response.web_search_call.in_progress"]
    events = read(keepalive, *events_of(response(message(text("Hi")))))
    assert kinds_of(events)[:2] == ["start", "unknown"]


@pytest.mark.parametrize("left_out", ["added", "delta", "part", "done", "item"])
def test_servers_may_leave_events_out(left_out: str) -> None:
    items = (reasoning("a"), message(text("Hello"), refusal("No")), custom_call("1+1"))
    if left_out in ("added", "item"):
        items = items[:2]  # a call cannot begin without its name
    events = [event for event in events_of(response(*items)) if left_out not in event["type"]]
    assert answer(read(*events)).choices[0].blocks == whole(*items).choices[0].blocks


def test_a_stream_ends_with_its_last_event() -> None:
    reader = reader_of()
    out: list[Event] = []
    events = events_of(response(message(text("Hello"))))
    reader.feed(data(*events[:-1]), out)
    assert not reader.is_complete
    reader.feed(data(events[-1], {"type": "late"}), out)
    assert reader.ended
    assert kinds_of(out)[-1] == "finish"


def items() -> st.SearchStrategy[list[Json]]:
    said = st.text(st.characters(codec="utf-8"), max_size=9)
    part = st.one_of(
        st.builds(text, said, annotations=st.lists(st.just(CITATION), max_size=2)),
        st.builds(refusal, said),
    )
    item = st.one_of(
        st.lists(part, min_size=1, max_size=3).map(lambda parts: message(*parts)),
        st.builds(
            lambda texts, encrypted: reasoning(*texts, **encrypted),
            st.lists(said, max_size=2),
            st.sampled_from([{}, {"encrypted_content": "gAAAA"}]),
        ),
        st.builds(function_call, said.map(lambda one: orjson.dumps({"a": one}).decode())),
        st.builds(custom_call, said),
        st.just(search()),
    )
    return st.lists(item, max_size=5)


def interleaved(found: list[Json], seed: int) -> list[Json]:
    """Return the events of items, which begin in order and go on in any order."""
    dice = random.Random(seed)
    waiting = [list(events_of_item(index, item)) for index, item in enumerate(found)]
    begun: list[list[Json]] = []
    events = []
    while waiting or any(begun):
        running = [one for one in begun if one]
        if waiting and (not running or dice.random() < 0.3):
            begun.append(waiting.pop(0))
            running = [begun[-1]]
        events.append(dice.choice(running).pop(0))
    return events


@settings(max_examples=examples(50), deadline=None)
@given(items(), st.integers(0, 1 << 16))
def test_interleaved_items_add_up_to_the_whole_answer(found: list[Json], seed: int) -> None:
    events = events_of(response(*found), interleaved(found, seed))
    assert answer(read(*events)) == whole(*found)


@settings(max_examples=examples(40), deadline=None)
@given(items(), st.integers(0, 1 << 16))
def test_the_providers_events_are_all_there_in_order(found: list[Json], seed: int) -> None:
    events = events_of(response(*found), interleaved(found, seed))
    reader = native_reader_of()
    out: list[Event] = []
    reader.feed(data(*events), out)
    reader.end([])
    assert [fields_in(event) for event in natives(out)] == [*map(handed_on, events)]
    assert out[0].HasField("start") and out[0].native
    deltas = [event["delta"] for event in events if event["type"].endswith(".delta")]
    assert "".join(said_in(out)) == "".join(deltas)
    expected = whole(*found)
    assert out[-2].usage == expected.usage
    assert [out[-1].finish.reason] == [one.finish.reason for one in expected.choices]


def test_a_stream_may_be_split_at_every_byte() -> None:
    found = [reasoning("ä", encrypted_content="g"), message(text("é😀"))]
    sent = data(*events_of(response(*found)))
    expected = whole(*found)
    for at in range(1, len(sent)):
        reader, splitter = reader_of(), SseSplitter(1 << 20)
        out: list[Event] = []
        for chunk in (sent[:at], sent[at:]):
            if ready := splitter.feed(chunk):
                reader.feed(ready, out)
        assert answer(out) == expected


def test_native_events_may_be_split_at_every_byte() -> None:
    events = events_of(response(message(text("aé😀 b c d" * 3))))
    sent = data(*events)
    for at in range(1, len(sent)):
        reader, splitter = native_reader_of(), SseSplitter(1 << 20)
        out: list[Event] = []
        for chunk in (sent[:at], sent[at:]):
            if ready := splitter.feed(chunk):
                reader.feed(ready, out)
        assert [*map(orjson.loads, natives(out))] == [*map(handed_on, events)]


@each_row(
    ("events", "reason"),
    [
        ([], "UPSTREAM_CONNECTION"),
        (["created"], "UPSTREAM_CONNECTION"),
        (["created", b"[DONE]"], "UPSTREAM_CONNECTION"),
        (["created", b"nothing"], "UPSTREAM_ERROR"),
        (["created", {"type": "response.output_item.done", "output_index": -1}], "UPSTREAM_ERROR"),
        (["created", {"type": "response.output_item.added", "item": 1}], "UPSTREAM_ERROR"),
        (
            ["created", {"type": "response.function_call_arguments.delta", "delta": "x"}],
            "UPSTREAM_ERROR",
        ),
        (
            [{"type": "error", "code": "rate_limit_exceeded", "message": "m"}],
            "UPSTREAM_RATE_LIMITED",
        ),
        (
            ["created", {"type": "error", "error": {"code": "context_length_exceeded"}}],
            "CONTEXT_LENGTH_EXCEEDED",
        ),
        (
            ["created", {"type": "response.failed",
                         "response": {"error": {"code": "server_error", "message": "m"}}}],
            "UPSTREAM_ERROR",
        ),
        (
            [{"type": "response.failed",
              "response": {"error": {"code": "invalid_prompt", "message": "m"}}}],
            "UPSTREAM_REJECTED",
        ),
        (["created", {"type": "response.failed", "response": {}}], "UPSTREAM_ERROR"),
    ],
)  # fmt: skip
def test_failures(events: list[Any], reason: str) -> None:
    created = events_of(response())[0]
    given = [created if one == "created" else one for one in events]
    assert reason_of(failure_of(reader_of(), *given)) == reason


@each_row(
    ("events", "reason"),
    [
        ([], "UPSTREAM_CONNECTION"),
        (["created", b"[DONE]"], "UPSTREAM_CONNECTION"),
        (["created", b"nothing"], "UPSTREAM_ERROR"),
        (["created", b"[1]"], "UPSTREAM_ERROR"),
        (["created", {"type": "response.output_item.done", "output_index": 0}], "UPSTREAM_ERROR"),
        (["created", {"type": "response.output_item.added", "item": 1}], "UPSTREAM_ERROR"),
        (["created", {"type": "response.output_text.delta", "delta": 1}], "UPSTREAM_ERROR"),
        (["created", {"type": "response.completed", "response": None}], "UPSTREAM_ERROR"),
        ([{"type": "error", "code": "rate_limit_exceeded"}], "UPSTREAM_RATE_LIMITED"),
        (["created", {"type": "response.failed", "response": {}}], "UPSTREAM_ERROR"),
        (
            ["created", b'{"type":"response.output_text.delta","sequence_number":1,"delta":"a}'],
            "UPSTREAM_ERROR",
        ),
    ],
)
def test_failures_of_native_streams(events: list[Any], reason: str) -> None:
    created = events_of(response())[0]
    given = [created if one == "created" else one for one in events]
    assert reason_of(failure_of(native_reader_of(), *given)) == reason


def test_announcements_are_no_content() -> None:
    found = [message(text("Hi")), function_call()]
    contents = []
    reader = native_reader_of()
    for event in events_of(response(*found)):
        reader.feed(data(event), [])
        contents.append((event["type"].removeprefix("response."), reader.has_content))
    assert contents[:5] == [
        ("created", False),
        ("in_progress", False),
        ("output_item.added", False),
        ("content_part.added", False),
        ("output_text.delta", True),
    ]
    reader = native_reader_of()
    for event in events_of(response(function_call()))[:3]:
        reader.feed(data(event), [])
    assert reader.has_content


@pytest.mark.parametrize("padding", ["", " "])
def test_events_of_other_forms_come_one_by_one(padding: str) -> None:
    events = events_of(response(message(text("Hi"))))
    reader = native_reader_of()
    out: list[Event] = []
    for event in events:
        written = orjson.dumps({**event, "sequence_number": None, "further": padding})
        reader.feed(b"data:" + written + b"\n\n", out)
    assert reader.ended
    assert not any(event.native_count for event in out)
    assert len(natives(out)) == len(events)


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled", "failed"])
def test_a_whole_answer_that_is_not_over_is_a_failure(status: str) -> None:
    with pytest.raises(Exception, match="unfinished"):
        whole(message(text("Hi")), status=status)


def test_an_answer_of_too_many_parts_is_broken_off() -> None:
    parts = [text("a")] * 20
    limits = Limits(max_answer_parts=16)
    reader = StreamReader(call_of(), Provider(limits), str)
    with pytest.raises(Exception, match="more than 16 parts"):
        reader.feed(data(*events_of(response(message(*parts)))), [])
    with pytest.raises(Exception, match="more than 16 parts"):
        events_from_whole(response(message(*parts)), call_of(), Provider(limits), str)


def test_what_waits_is_joined_and_bounded() -> None:
    added = [next(events_of_item(index, function_call(id=f"fc_{index}"))) for index in range(2)]
    piece = {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "12"}
    reader = reader_of(Limits(max_answer_parts=16))
    out: list[Event] = []
    reader.feed(data(*events_of(response())[:1], *added, *[piece] * 1000), out)
    done = {"type": "response.output_item.done", "output_index": 0, "item": function_call()}
    reader.feed(data(done), out)
    assert out[-1].input == "12" * 1000


def test_streamed_answers_are_whole_ones() -> None:
    assert streamed() == whole()
