from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import orjson
import pytest
from anthropic.types import Message as SdkMessage
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Thinking, ToolUse, Usage
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import BlockStop, Event, Finish, GenerateResponse, Start
from services.common.errors import UpstreamError
from services.inference.providers.anthropic.events import StreamReader, events_from_whole
from services.inference.providers.sse import SseSplitter
from services.inference.stream.accumulator import Accumulator
from tests.grid import each_row
from tests.services.inference.providers.anthropic_answers import (
    BEGIN,
    CITATION,
    FOUND,
    OVER,
    SEARCH,
    STREAM,
    TEXT,
    WHOLE,
    Provider,
    delta,
    ended,
    started,
    stopped,
    wire,
)
from tests.services.inference.providers.anthropic_calls import opaque

STOP = BlockStop()


def reader() -> StreamReader:
    return StreamReader(Provider())


def read(*chunks: bytes) -> tuple[list[Event], UpstreamError | None]:
    """Return the events of a stream that comes in these chunks, and how it failed."""
    cutter, reading, events = SseSplitter(1 << 20), reader(), []
    try:
        for chunk in chunks:
            reading.feed(cutter.feed(chunk), events)
        reading.end(events)
    except UpstreamError as error:
        return events, error
    return events, None


def events_of(*stream: dict[str, Any]) -> list[Event]:
    events, failure = read(wire(stream))
    assert failure is None
    return events


def added_up(events: Iterable[Event]) -> GenerateResponse:
    accumulator = Accumulator()
    accumulator.add(events)
    return accumulator.response()


def reason_of(failure: UpstreamError | None) -> int:
    assert failure is not None
    return failure.reason


def test_the_samples_are_what_the_official_sdk_reads() -> None:
    TypeAdapter(SdkMessage).validate_python(WHOLE)


def test_a_stream_becomes_events_in_order() -> None:
    start = Start(id="msg_1", model="claude-1")
    first = Usage(
        input_tokens=10,
        output_tokens=1,
        cache_creation_input_tokens=2,
        cache_read_input_tokens=3,
        extra=opaque({"service_tier": "standard"}),
    )
    last = Usage()
    last.CopyFrom(first)
    last.output_tokens, last.reasoning_tokens = 42, 7
    searches = {"web_search_requests": 1, "web_fetch_requests": 0}
    last.extra.CopyFrom(opaque({"service_tier": "standard", "server_tool_use": searches}))
    query = [{"type": "input_json_delta", "partial_json": p} for p in ('{"query"', ':"x"}')]
    assert events_of(*STREAM) == [
        Event(start=start),
        Event(usage=first),
        Event(block=0, block_start=Block(thinking=Thinking(field="reasoning_details"))),
        Event(block=0, thinking="hm"),
        Event(block=0, thinking=", so"),
        Event(block=0, signature="AAA="),
        Event(block=0, block_stop=STOP),
        Event(block=1, block_start=Block(redacted_thinking="BBB=")),
        Event(block=1, block_stop=STOP),
        Event(block=2, block_start=Block(text="", extra=opaque({"citations": []}))),
        Event(block=2, text="see"),
        Event(block=2, opaque=opaque({"type": "citations_delta", "citation": CITATION})),
        Event(block=2, block_stop=STOP),
        Event(block=3, block_start=Block(opaque=opaque({**SEARCH, "input": {}}))),
        Event(block=3, opaque=opaque(query[0])),
        Event(block=3, opaque=opaque(query[1])),
        Event(block=3, block_stop=STOP),
        Event(block=4, block_start=Block(opaque=opaque(FOUND))),
        Event(block=4, block_stop=STOP),
        Event(block=5, block_start=Block(tool_use=ToolUse(id="t1", name="f"))),
        Event(block=5, input='{"a":'),
        Event(block=5, input="[1]}"),
        Event(block=5, block_stop=STOP),
        Event(block=6, block_start=Block(tool_use=ToolUse(id="t2", name="g"))),
        Event(block=6, input="{}"),
        Event(block=6, block_stop=STOP),
        Event(usage=last),
        Event(
            finish=Finish(
                reason=conversation_pb2.FINISH_REASON_TOOL_USE,
                extra=opaque({"container": WHOLE["container"]}),
            )
        ),
    ]


def test_a_whole_answer_and_its_stream_add_up_to_the_same() -> None:
    assert added_up(events_from_whole(WHOLE, Provider())) == added_up(events_of(*STREAM))


@settings(deadline=None)
@given(st.lists(st.integers(0, len(wire(STREAM))), max_size=8))
def test_a_stream_may_be_cut_at_any_byte(cuts: list[int]) -> None:
    text = wire(STREAM)
    places = [0, *sorted(cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(places)]
    assert read(*chunks) == (read(text)[0], None)


def test_a_stream_may_come_byte_by_byte() -> None:
    text = wire(STREAM)
    assert read(*(text[place : place + 1] for place in range(len(text)))) == (read(text)[0], None)


@settings(deadline=None)
@given(st.integers(0, len(STREAM) - 1), st.booleans())
def test_a_stream_that_ends_before_the_reason_to_stop_is_broken(end: int, cut: bool) -> None:
    text = wire(STREAM[:end])[: -1 if cut else None]
    events, failure = read(text)
    whole_until = end - 1 if cut and end else end
    if whole_until >= len(STREAM) - 1:
        assert failure is None
    else:
        assert reason_of(failure) == errors_pb2.REASON_UPSTREAM_CONNECTION
    assert events == events_of(*STREAM)[: len(events)]


def test_a_stop_reason_completes_without_the_last_event() -> None:
    assert read(wire(STREAM[:-1])) == (events_of(*STREAM), None)


def test_an_empty_stream_is_a_failure() -> None:
    assert reason_of(read(b"")[1]) == errors_pb2.REASON_UPSTREAM_CONNECTION
    assert reason_of(read(b": hello\n\n")[1]) == errors_pb2.REASON_UPSTREAM_CONNECTION


def test_nothing_is_read_after_the_last_event() -> None:
    assert read(wire([*STREAM, BEGIN]) + b"data: [DONE]\n\n") == (events_of(*STREAM), None)


@each_row(
    ("kind", "reason", "status"),
    [
        ("overloaded_error", errors_pb2.REASON_UPSTREAM_OVERLOADED, 529),
        ("rate_limit_error", errors_pb2.REASON_UPSTREAM_RATE_LIMITED, 429),
        ("api_error", errors_pb2.REASON_UPSTREAM_ERROR, 500),
        ("timeout_error", errors_pb2.REASON_UPSTREAM_TIMEOUT, 408),
        ("authentication_error", errors_pb2.REASON_UPSTREAM_AUTH, 401),
        ("invalid_request_error", errors_pb2.REASON_UPSTREAM_REJECTED, 400),
        ("brand_new_error", errors_pb2.REASON_UPSTREAM_ERROR, 500),
    ],
)
@each_row("before", [0, 4, len(STREAM) - 1])
def test_an_error_event_keeps_the_events_before_it(
    before: int, kind: str, reason: int, status: int
) -> None:
    error = {"type": "error", "error": {"type": kind, "message": "no"}}
    events, failure = read(wire([*STREAM[:before], error, *STREAM[before:]]))
    assert (reason_of(failure), failure and failure.status) == (reason, status)
    assert events == read(wire(STREAM[:before]))[0]


def test_the_event_name_stands_in_for_a_missing_type() -> None:
    nameless = [{k: v for k, v in event.items() if k != "type"} for event in STREAM]
    text = b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(bare))
        for event, bare in zip(STREAM, nameless, strict=True)
    )
    assert read(text) == (events_of(*STREAM), None)


def test_events_of_newer_versions_are_kept_beside_the_answer() -> None:
    new = [{"type": "brand_new", "x": number} for number in range(3)]
    early, later, last = (Event(unknown=opaque(event)) for event in new)
    plain = events_of(*STREAM)
    events = events_of(
        new[0], STREAM[0], {"type": "ping"}, new[1], *STREAM[1:-1], new[2], STREAM[-1]
    )
    assert events == [*plain[:2], early, later, *plain[2:], last]
    assert added_up(events) == added_up(plain)


def test_unknown_events_before_the_answer_are_bounded() -> None:
    new = [{"type": "brand_new"}] * 10_001
    cutter, reading = SseSplitter(1 << 20), reader()
    with pytest.raises(UpstreamError, match=r"limits\.max_answer_parts|more than 10,000"):
        reading.feed(cutter.feed(wire(new)), [])
    # What comes beside an answer is sent on, and does not wait.
    told, failure = read(wire(STREAM[:-1]), wire(new), wire(STREAM[-1:]))
    assert failure is None and told[-1].HasField("unknown")


def test_deltas_keep_unknown_fields_beside_their_text() -> None:
    began = started(0, {"type": "text", "text": ""})
    said = [delta(0, "text_delta", text="a", x=1), delta(0, "text_delta", text="b")]
    events = events_of(BEGIN, began, *said, stopped(0), ended(), OVER)
    beside = Event(opaque=opaque({"type": "text_delta", "text": "", "x": 1}))
    assert events[3:6] == [Event(text="a"), beside, Event(text="b")]
    (block,) = added_up(events).choices[0].blocks
    assert (block.text, orjson.loads(block.extra.json)) == ("ab", {"x": 1})


@each_row(
    "bad",
    [
        [OVER],
        [ended()],
        [BEGIN, BEGIN],
        [BEGIN, delta(0, "input_json_delta", partial_json="x")],
        [BEGIN, {"type": "content_block_stop", "index": "0"}],
        [BEGIN, TEXT, started(1, {"type": "text", "text": ""}), delta(0, "text_delta", text="x")],
        [BEGIN, TEXT, delta(0, "thinking_delta", thinking="x")],
        [BEGIN, TEXT, delta(0, "input_json_delta", partial_json="x")],
        [BEGIN, TEXT, delta(0, "text_delta", text=5)],
        [BEGIN, TEXT, stopped(0), delta(0, "input_json_delta", partial_json="x")],
        [BEGIN, TEXT, {"type": "content_block_delta", "index": 0}],
        [BEGIN, started(0, {"text": "x"})],
        [BEGIN, started(0, {"type": "tool_use", "id": "t", "name": "f", "input": "x"})],
        [BEGIN, {"type": "content_block_start", "index": 0, "content_block": None}],
        [BEGIN, ended(usage={"output_tokens": "5"})],
        [BEGIN, ended(usage={"output_tokens": -1})],
        [BEGIN, ended(usage={"output_tokens": 2**63})],
        [BEGIN, ended(reason=5)],
        [BEGIN, ended(), TEXT],
        [BEGIN, OVER],
        [{"type": "message_start", "message": []}],
        [{"type": "message_start", "message": {"usage": []}}],
        [{"type": "message_start", "message": {"id": 5}}],
    ],
)
def test_events_of_the_wrong_shape_are_the_providers_failure(bad: list[dict[str, Any]]) -> None:
    events, failure = read(wire(bad))
    assert reason_of(failure) == errors_pb2.REASON_UPSTREAM_ERROR
    assert events == read(wire(bad[:-1]))[0]


@pytest.mark.parametrize("data", [b"{", b"[]", b"null", b"5", b"\xff"])
def test_data_that_is_no_object_is_the_providers_failure(data: bytes) -> None:
    events, failure = read(wire([BEGIN]) + b"data: " + data + b"\n\n")
    assert reason_of(failure) == errors_pb2.REASON_UPSTREAM_ERROR
    assert len(events) == 2


def test_deltas_of_one_read_are_one_event_of_many_pieces() -> None:
    events = events_of(
        BEGIN,
        TEXT,
        *(delta(0, "text_delta", text=word) for word in "abc"),
        {"type": "ping"},
        *(delta(0, "text_delta", text=word) for word in "de\n"),
        stopped(0),
        ended(),
        OVER,
    )
    said = [(event.text, list(event.pieces)) for event in events if event.text]
    assert said == [("a", []), ("bc", [b"b", b"c"]), ("d", []), ("e\n", [b"e", b"\\n"])]


def test_an_unclosed_block_is_closed_before_the_next() -> None:
    events = events_of(BEGIN, TEXT, started(1, {"type": "text", "text": "b"}), ended(), OVER)
    assert [event.WhichOneof("kind") for event in events[2:]] == [
        *("block_start", "block_stop"),
        *("block_start", "block_stop"),
        *("usage", "finish"),
    ]
    assert [event.block for event in events[2:6]] == [0, 0, 1, 1]


def test_blocks_are_renumbered_from_zero() -> None:
    events = events_of(
        BEGIN,
        started(7, {"type": "text", "text": ""}),
        delta(7, "text_delta", text="x"),
        stopped(7),
        ended(),
        OVER,
    )
    assert {event.block for event in events} == {0}


def test_arguments_that_come_with_the_call_itself_are_kept() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    (choice,) = added_up(
        events_of(BEGIN, started(0, call), stopped(0), ended("tool_use"), OVER)
    ).choices
    assert choice.blocks[0].tool_use.input == '{"a":1}'


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("end_turn", conversation_pb2.FINISH_REASON_END_TURN),
        ("max_tokens", conversation_pb2.FINISH_REASON_MAX_TOKENS),
        ("stop_sequence", conversation_pb2.FINISH_REASON_STOP_SEQUENCE),
        ("tool_use", conversation_pb2.FINISH_REASON_TOOL_USE),
        ("refusal", conversation_pb2.FINISH_REASON_REFUSAL),
        ("pause_turn", conversation_pb2.FINISH_REASON_PAUSE_TURN),
        ("model_context_window_exceeded", conversation_pb2.FINISH_REASON_CONTEXT_WINDOW),
    ],
)
def test_every_reason_to_stop_has_its_own(told: str, reason: int) -> None:
    assert events_of(BEGIN, ended(told), OVER)[-1] == Event(finish=Finish(reason=reason))


def test_an_unknown_stop_reason_keeps_its_name() -> None:
    assert events_of(BEGIN, ended("brand_new"), OVER)[-1].finish == Finish(
        reason=conversation_pb2.FINISH_REASON_END_TURN, extra=opaque({"stop_reason": "brand_new"})
    )


def test_the_matched_stop_sequence_is_reported() -> None:
    finish = events_of(BEGIN, ended("stop_sequence", stop_sequence="END"), OVER)[-1].finish
    assert finish.stop_sequence == "END"


def test_an_answer_finishes_once_and_later_usage_still_counts() -> None:
    events = events_of(BEGIN, ended(), ended(usage={"output_tokens": 9}), OVER)
    assert [event.WhichOneof("kind") for event in events[2:]] == ["usage", "finish", "usage"]
    assert (events[-1].usage.output_tokens, events[-1].usage.input_tokens) == (9, 10)


def test_a_report_of_usage_alone_does_not_finish() -> None:
    kinds = [event.WhichOneof("kind") for event in events_of(BEGIN, ended(None), ended(), OVER)]
    assert kinds == ["start", "usage", "usage", "usage", "finish"]


def test_fields_without_a_name_here_are_kept_where_they_were() -> None:
    begin = {**BEGIN, "message": {**BEGIN["message"], "diagnostics": {"x": 1}, "container": None}}
    end = {**ended(stop_details={"type": "refusal"}), "context_management": {"applied_edits": []}}
    events = events_of(begin, end, OVER)
    assert events[0].start.extra == opaque({"diagnostics": {"x": 1}})
    kept = {"context_management": {"applied_edits": []}, "stop_details": {"type": "refusal"}}
    assert events[-1].finish.extra == opaque(kept)
    whole = {**WHOLE, "diagnostics": {"x": 1}, **kept, "container": None}
    answer = added_up(events_from_whole(whole, Provider()))
    assert answer.extra == opaque({"diagnostics": {"x": 1}})
    assert orjson.loads(answer.choices[0].finish.extra.json) == kept


@each_row(
    "change",
    [
        {"content": None},
        {"content": "text"},
        {"content": ["text"]},
        {"content": [{"type": "text", "text": 5}]},
        {"stop_reason": None},
        {"stop_reason": ["x"]},
        {"usage": 5},
        {"usage": {"input_tokens": 1.5}},
        {"id": 5},
    ],
)
def test_a_malformed_whole_answer_is_an_upstream_failure(change: dict[str, Any]) -> None:
    with pytest.raises(UpstreamError) as raised:
        events_from_whole({**WHOLE, **change}, Provider())
    assert raised.value.reason == errors_pb2.REASON_UPSTREAM_ERROR


def test_a_whole_answer_without_content_is_empty() -> None:
    answer = added_up(events_from_whole({**WHOLE, "content": []}, Provider()))
    assert list(answer.choices[0].blocks) == []


def test_content_begins_with_what_says_something() -> None:
    reading = reader()
    quiet = [BEGIN, {"type": "ping"}, started(0, {"type": "text", "text": ""})]
    for event in quiet:
        reading.feed(wire([event]), [])
        assert not reading.has_content
    reading.feed(wire([delta(0, "text_delta", text="a")]), [])
    assert reading.has_content and not reading.is_complete


@pytest.mark.parametrize("reason", ["sensitive", "content_filter"])
def test_refusals_of_other_servers_are_refusals(reason: str) -> None:
    finish = added_up(events_of(BEGIN, ended(reason), OVER)).choices[0].finish
    assert finish.reason == conversation_pb2.FINISH_REASON_REFUSAL
    assert orjson.loads(finish.extra.json) == {"stop_reason": reason}


def test_a_stop_reason_that_reports_a_failure_is_one() -> None:
    _, failure = read(wire([BEGIN, ended("network_error"), OVER]))
    assert reason_of(failure) == errors_pb2.REASON_UPSTREAM_ERROR
    with pytest.raises(UpstreamError):
        events_from_whole({**WHOLE, "stop_reason": "network_error"}, Provider())


def test_usage_never_falls() -> None:
    later = ended(usage={"input_tokens": 0, "output_tokens": 12})
    usage = added_up(events_of(BEGIN, later, OVER)).usage
    assert (usage.input_tokens, usage.output_tokens) == (10, 12)
