"""Streams of responses: what they consist of, and what a reader puts together from them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversation.v1.conversation_pb2 import Block, Citation, Usage
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import BlockStop, Event, Finish, Start
from services.common.errors import GatewayError
from tests.facade.dialects.openai.answers import FOREIGN
from tests.facade.dialects.responses.answers import (
    APPROVAL,
    RESPONSE_ID,
    answer,
    assembled,
    call,
    checked,
    choice,
    echo,
    events_of,
    found,
    own,
    read,
    rendered,
    search,
    stream,
    streamed,
    text,
    thinking,
)

FAILED = GatewayError(errors_pb2.REASON_UPSTREAM_OVERLOADED, "too much to do")
WORDS = st.text(min_size=1, max_size=12).filter(lambda word: "\ud800" > word or word > "\udfff")


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def test_the_events_of_a_text() -> None:
    events = streamed([events_of(answer(choice(text("hello"))))])
    assert kinds(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert events[0]["response"]["status"] == "in_progress"
    assert events[4]["logprobs"] == []
    assert events[-1]["response"]["usage"]["input_tokens"] == 3


def test_the_events_of_thoughts_and_calls() -> None:
    blocks = [thinking("hm"), call("c1", "f", "{}"), call("c2", "g", "x", freeform=True)]
    events = streamed([events_of(answer(choice(*blocks, reason="TOOL_USE")))])
    assert kinds(events)[2:-1] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]


def test_the_events_of_searches() -> None:
    blocks = [search(1, "q"), search(2, "r"), found(1), found(2, "http://a"), text("x")]
    events = streamed([events_of(answer(choice(*blocks)))])
    assert kinds(events)[2:12] == [
        *("output_item.added", "web_search_call.in_progress", "web_search_call.searching") * 2,
        *("web_search_call.completed", "output_item.done") * 2,
    ]
    assert [event["output_index"] for event in events[2:12]] == [0, 0, 0, 1, 1, 1, 0, 0, 1, 1]


def test_a_refusal_is_a_part_of_its_own() -> None:
    given_answer = answer(choice(text("a"), Block(refusal="no"), reason="REFUSAL"))
    events = streamed([events_of(given_answer)])
    assert kinds(events)[6:11] == [
        "content_part.done",
        "content_part.added",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
    ]
    assert events[-1]["type"] == "response.completed"


def test_an_answer_that_was_cut_is_incomplete() -> None:
    *_, done, last = streamed([events_of(answer(choice(text("a"), reason="MAX_TOKENS")))])
    assert done["item"]["status"] == "incomplete"
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_annotations_come_where_they_stand() -> None:
    cited = {"type": "url_citation", "start_index": 0, "end_index": 1, "url": "u", "title": "t"}
    events = [
        Event(start=Start(id="x", model="m")),
        Event(block_start=Block(text="")),
        Event(text="a"),
        Event(opaque=own(annotations=[cited])),
        Event(block_stop=BlockStop()),
        Event(finish=Finish(reason="FINISH_REASON_END_TURN")),
    ]
    written = streamed([events])
    assert kinds(written)[4:7] == [
        *("output_text.delta", "output_text.annotation.added"),
        "output_text.done",
    ]
    assert assembled(written)[0]["content"][0]["annotations"] == [cited]


def test_log_probabilities_go_with_their_text() -> None:
    told = {"content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}]}
    events = events_of(answer(choice(text("a"))))
    next(event for event in events if event.text).logprobs = json.dumps(told).encode()
    asked = echo(include=["message.output_text.logprobs"])
    assert assembled(streamed([events], asked))[0]["content"][0]["logprobs"] == told["content"]
    assert assembled(streamed([events]))[0]["content"][0]["logprobs"] == []


def test_an_interrupted_answer_fails() -> None:
    encoder = stream()
    events = events_of(answer(choice(thinking("a"), text("hello"))))[:-3]
    raw = encoder.encode(events) + encoder.error(FAILED)
    *_, error, last = read(raw)
    assert (error["type"], error["code"], error["message"]) == (
        *("error", "upstream_overloaded"),
        "too much to do",
    )
    assert last["response"]["error"] == {"code": "server_error", "message": "too much to do"}
    assert [item["type"] for item in last["response"]["output"]] == ["reasoning"]
    assert json.loads(encoder.response) == checked(last["response"])


def test_an_answer_without_its_end_fails() -> None:
    *_, last = streamed([events_of(answer(choice(text("a"))))[:-2]])
    assert last["type"] == "response.failed"


def test_many_pieces_are_numbered_in_order() -> None:
    events = events_of(answer(choice(text("a" * 2_000))), size=2_000)
    next(event for event in events if event.text).pieces.extend([b"a"] * 2_000)
    written = streamed([events])
    assert len([event for event in written if "delta" in event]) == 2_000
    assert assembled(written) == written[-1]["response"]["output"]


def test_pieces_are_events_of_their_own() -> None:
    events = events_of(answer(choice(text("ab%s"), call("c", "f", '{"a"}'))), size=100)
    for event in events:
        if event.text:
            event.pieces.extend([b"a", b"b%s"])
        if event.input:
            event.pieces.extend([rb"{\"a\"", b"}"])
    written = streamed([events])
    assert [e["delta"] for e in written if "delta" in e] == ["a", "b%s", '{"a"', "}"]
    assert assembled(written) == written[-1]["response"]["output"]


BLOCKS = st.one_of(
    WORDS.map(text),
    WORDS.map(thinking),
    WORDS.map(lambda word: Block(refusal=word)),
    WORDS.map(lambda word: Block(redacted_thinking=word)),
    st.just(Block(text="")),
    st.just(Block(opaque=FOREIGN)),
    st.just(Block(opaque=own(**APPROVAL))),
    st.builds(call, WORDS, WORDS, st.text(max_size=12), st.booleans()),
)
SEARCHES = st.permutations([search(1, "q"), search(2, "r"), call("c", "f", "{}")]).map(
    lambda calls: [*calls, found(2, "http://a"), found(1)]
)


@settings(deadline=None)
@given(
    st.lists(BLOCKS, max_size=5),
    st.one_of(st.just([]), SEARCHES),
    st.lists(BLOCKS, max_size=3),
    st.sampled_from(["END_TURN", "TOOL_USE", "MAX_TOKENS", "REFUSAL"]),
    st.integers(1, 9),
    st.data(),
)
def test_a_stream_says_what_the_whole_answer_says(
    before: list, searches: list, after: list, reason: str, size: int, data: st.DataObject
) -> None:
    blocks = [*before, *searches, *after]
    response = answer(choice(*blocks, reason=reason), usage=Usage(output_tokens=4))
    events = events_of(response, size)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(events)))))
    batches = [events[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True)]
    written = streamed(batches)
    whole = rendered(response)
    assert written[-1]["response"] == whole
    assert assembled(written) == whole["output"]


NATIVE = [
    {"type": "response.created", "sequence_number": 0, "response": {"model": "m"}},
    {"type": "response.newest", "x": 'a "sequence_number":7', "sequence_number": 5},
    {
        "sequence_number": 6,
        "type": "response.output_item.done",
        "item": {"id": "i", "type": "x", "schema": {"sequence_number": 1}},
        "output_index": 0,
    },
    {"type": "response.completed", "sequence_number": 9, "x": 1, "response": {"usage": {}}},
]


def native_events() -> list[Event]:
    events = [Event(start=Start(id="r", model="m")), *(Event(unknown=own()) for _ in NATIVE[1:])]
    for event, sent in zip(events, NATIVE, strict=True):
        event.native = json.dumps(sent, separators=(",", ":")).encode()
    # What the last one was read as, beside the event that has it.
    return [*events[:2], Event(block_start=Block(text="a")), *events[2:], Event(usage=Usage())]


def native(raw: bytes) -> list[dict[str, Any]]:
    *parts, _ = raw.decode().split("\n\n")
    return [json.loads(part.partition("\ndata: ")[2]) for part in parts]


def test_native_events_are_passed_on() -> None:
    encoder = stream(echo(previous_response_id="p"))
    written = native(encoder.encode(native_events()) + encoder.finish())
    assert [event["sequence_number"] for event in written] == [0, 1, 2, 3]
    assert written[1] == {**NATIVE[1], "sequence_number": 1}
    assert written[2] == {**NATIVE[2], "sequence_number": 2}
    for event in (written[0], written[3]):
        response = event["response"]
        assert (response["id"], response["previous_response_id"]) == (RESPONSE_ID, "p")
        assert response["store"] is True
    assert json.loads(encoder.response) == written[3]["response"]


@pytest.mark.parametrize("first", [0, 7])
@pytest.mark.parametrize("store", [False, True])
def test_a_native_stream_of_which_nothing_is_kept_gets_an_id(first: int, store: bool) -> None:
    stateless = {"id": "resp_x", "background": False, "previous_response_id": None, "store": False}
    sent = [
        {"type": kind, "sequence_number": number, "response": {**stateless, "output": []}}
        for number, kind in enumerate(("response.created", "response.completed"), first)
    ]
    encoder = stream(echo(store=store))
    events = [Event(start=Start(id="r", model="m")), Event(unknown=own())]
    for event, one in zip(events, sent, strict=True):
        event.native = json.dumps(one, separators=(",", ":")).encode()
    written = native(encoder.encode(events) + encoder.finish())
    state = {"conversation": None, "store": True} if store else {}
    response = {**stateless, "output": [], "id": RESPONSE_ID, **state}
    assert written == [
        {**one, "sequence_number": number, "response": response} for number, one in enumerate(sent)
    ]
    assert json.loads(encoder.response) == written[-1]["response"]


DELTAS = [
    b'{"type":"response.output_text.delta","sequence_number":%d,"item_id":"i","delta":"a"}' % number
    for number in range(1, 5)
]


def run_of(deltas: list[bytes]) -> Event:
    sent = b"".join(b"event: response.output_text.delta\ndata: %b\n\n" % delta for delta in deltas)
    number = json.loads(deltas[0])["sequence_number"]
    return Event(text="a", native=sent, native_count=len(deltas), native_number=number)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("lengths", [(4,), (1, 3), (2, 1, 1)])
def test_runs_of_native_events_are_events(first: int, lengths: tuple[int, ...]) -> None:
    begin, *_ = native_events()
    rest = iter(DELTAS)
    runs = [[next(rest) for _ in range(length)] for length in lengths]
    encoder = stream()
    if not first:
        # Then the numbers are not the provider's.
        encoder.encode([begin, Event(unknown=own(), native=b'{"type":"response.newest"}')])
    else:
        encoder.encode([begin])
    raw = encoder.encode([run_of(run) for run in runs])
    numbers = range(2 - first, 6 - first)
    assert native(raw) == [
        {**json.loads(delta), "sequence_number": number}
        for delta, number in zip(DELTAS, numbers, strict=True)
    ]
    assert raw.count(b"event: response.output_text.delta\n") == len(DELTAS)


def test_a_native_stream_that_breaks_off_fails() -> None:
    encoder = stream()
    raw = encoder.encode(native_events()[:-2]) + encoder.finish()
    *_, error, last = native(raw)
    assert (error["type"], error["sequence_number"]) == ("error", 3)
    assert last["response"]["output"] == [NATIVE[2]["item"]]
    assert last["response"]["status"] == "failed"


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("deltas", [0, 3])
def test_items_of_runs_are_kept_for_a_failure(first: int, deltas: int) -> None:
    begin, *_ = native_events()
    encoder = stream()
    encoder.encode([begin])
    if not first:
        # Then the numbers are not the provider's.
        encoder.encode([Event(unknown=own(), native=b'{"type":"response.newest"}')])
    kind, item = "response.output_item.done", {"id": "i", "type": "message", "content": []}
    done = {"type": kind, "sequence_number": deltas + 1, "output_index": 0, "item": item}
    sent = json.dumps(done, separators=(",", ":")).encode()
    run = run_of([*DELTAS[:deltas], sent])
    run.native = run.native.replace(
        b"output_text.delta\ndata: " + sent, b"output_item.done\ndata: " + sent
    )
    encoder.encode([run])
    assert native(encoder.finish())[-1]["response"]["output"] == [item]


@pytest.mark.parametrize("space", [b"\n", b"\r\n"])
def test_line_breaks_of_native_events_end_nothing(space: bytes) -> None:
    event = Event(start=Start(id="r", model="m"))
    event.native = json.dumps(NATIVE[0]).encode().replace(b", ", b"," + space)
    (written,) = native(stream().encode([event]))
    assert written["type"] == "response.created"


def test_the_end_of_a_native_stream_waits_for_the_finish() -> None:
    encoder = stream()
    before = native(encoder.encode(native_events()))
    assert [event["type"] for event in before] == [event["type"] for event in NATIVE[:-1]]
    (last,) = native(encoder.finish())
    assert (last["type"], last["sequence_number"]) == ("response.completed", len(before))


def test_a_queued_native_stream_is_created_once() -> None:
    encoder = stream()
    raw = encoder.queue("m") + encoder.encode(native_events()) + encoder.finish()
    written = native(raw)
    assert kinds(written)[:2] == ["created", "queued"]
    assert "created" not in kinds(written)[2:]
    assert [event["sequence_number"] for event in written] == list(range(len(written)))


def test_citations_are_annotations_of_their_text() -> None:
    cited = Citation(url="https://a.example", title="A", start_index=0, end_index=1)
    shown = {
        **{"type": "url_citation", "start_index": 0, "end_index": 1},
        **{"url": "https://a.example", "title": "A"},
    }
    events = [
        Event(start=Start(id="x", model="m")),
        Event(block_start=Block(text="")),
        Event(text="a"),
        Event(citation=cited),
        Event(block_stop=BlockStop()),
        Event(finish=Finish(reason="FINISH_REASON_END_TURN")),
    ]
    written = streamed([events])
    assert kinds(written)[5] == "output_text.annotation.added"
    assert assembled(written)[0]["content"][0]["annotations"] == [shown]
    response = rendered(answer(choice(Block(text="a", citations=[cited]))))
    assert response["output"][0]["content"][0]["annotations"] == [shown]
