"""Runs of text deltas say what their events say one by one."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import GatewayError
from tests.grid import each_row
from tests.services.inference.providers.openai_responses.responses_answers import (
    answer,
    native_reader_of,
    natives,
    reader_of,
    response,
    said_in,
)

TEXT_DELTA = "response.output_text.delta"
WORDS = st.sampled_from(["a", "é", '"', "\\", "\n", "😀", "\x1e", "", '","logprobs":[]}\n\n'])
# What makes a delta another one than the one before it, in place of its fields.
CHANGES = st.sampled_from(
    [
        *({}, {}, {}, {"obfuscation": "aB3"}, {"obfuscation": "x y"}),
        *({"content_index": 1}, {"item_id": "m2"}, {"further": 1}, {"sequence_number": 7}),
        {"logprobs": [{"token": "a", "logprob": 0.0}]},
    ]
)


def sent(event: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event))


def stream_of(deltas: Sequence[tuple[str, dict[str, Any]]]) -> list[bytes]:
    """Return the events of a response with these deltas."""
    place = {"item_id": "m1", "output_index": 0, "content_index": 0}
    begin: list[dict[str, Any]] = [
        {"type": "response.created", "sequence_number": 0, "response": response()},
        {
            "type": "response.output_item.added",
            "sequence_number": 1,
            "output_index": 0,
            "item": {"type": "message", "id": "m1", "role": "assistant", "content": []},
        },
    ]
    said = [
        {"type": TEXT_DELTA, "sequence_number": number, **place, "delta": word, "logprobs": []}
        | change
        for number, (word, change) in enumerate(deltas, len(begin))
    ]
    end = {"type": "response.completed", "sequence_number": 99, "response": response()}
    return [*map(sent, [*begin, *said, end])]


def read(parts: Sequence[bytes], *, native: bool) -> tuple[list[Event], bool]:
    """Return the events that parts of a stream stand for."""
    reader = native_reader_of() if native else reader_of()
    out: list[Event] = []
    for part in parts:
        reader.feed(part, out)
    return out, reader.has_content


@given(st.lists(st.tuples(WORDS, CHANGES), max_size=8), st.booleans())
@example([("a", {})] * 4, True)
@example([("a", {}), ("b", {"obfuscation": "aB3"}), ("c", {})], False)
def test_a_run_says_what_its_events_say(
    deltas: list[tuple[str, dict[str, Any]]], native: bool
) -> None:
    parts = stream_of(deltas)
    # A comment keeps events from being recognised.
    alone, has_content = read([b":\n" + part for part in parts], native=native)
    together = read([b"".join(parts)], native=native)
    assert together[1] is has_content
    if native:
        assert "".join(said_in(together[0])) == "".join(said_in(alone))
    else:
        assert answer(together[0]) == answer(alone)
    passed = natives(together[0])
    assert passed == natives(alone)
    assert bool(passed) is native


@pytest.mark.parametrize("place", range(4))
def test_an_event_of_two_data_lines_is_read_whole(place: int) -> None:
    parts = stream_of([("a", {}), ("b", {}), ("c", {}), ("d", {})])
    first = 2 + place
    parts[first] = parts[first].replace(b',"item_id"', b',\ndata: "item_id"')
    out, _ = read([b"".join(parts)], native=True)
    assert "".join(said_in(out)) == "abcd"
    numbers = [orjson.loads(one)["sequence_number"] for one in natives(out)]
    assert numbers == [0, 1, 2, 3, 4, 5, 99]


@pytest.mark.parametrize("change", [{"sequence_number": 9}, {"item_id": "m2"}, {"further": {}}])
def test_a_run_ends_before_another_delta(change: dict[str, Any]) -> None:
    parts = stream_of([("a", {}), ("b", {}), ("c", {}), ("d", change), ("e", {})])
    out, _ = read([b"".join(parts)], native=True)
    numbers = {"sequence_number": 9}
    expected = [(4, 1), (1, 9), (1, 6)] if change == numbers else [(6, 1)]
    found = [(event.native_count, event.native_number) for event in out if event.text]
    assert found == expected


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "response.output_text.delta": ("text", {"content_index": 0, "logprobs": []}),
    "response.refusal.delta": ("refusal", {"content_index": 0}),
    "response.reasoning_summary_text.delta": ("thinking", {"summary_index": 0}),
    "response.reasoning_text.delta": ("thinking", {"content_index": 0}),
    "response.function_call_arguments.delta": ("input", {}),
    "response.custom_tool_call_input.delta": ("input", {}),
}
ITEMS: dict[str, dict[str, Any]] = {
    "text": {"type": "message", "id": "i", "content": []},
    "refusal": {"type": "message", "id": "i", "content": []},
    "thinking": {"type": "reasoning", "id": "i", "summary": []},
    "input": {"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": ""},
}


@each_row("padding", [{}, {"obfuscation": "aB3"}])
@each_row("kind", KINDS)
def test_deltas_of_every_kind_come_in_runs(kind: str, padding: dict[str, str]) -> None:
    said, place = KINDS[kind]
    item = ITEMS[said]
    begin = stream_of([])[0]
    added = {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0}
    at = {"item_id": "i", "output_index": 0, **place}
    deltas = [
        sent({"type": kind, "sequence_number": number, "delta": word, **at, **padding})
        for number, word in enumerate(["a", "b\n", "c"], 998)
    ]
    out, _ = read([begin, sent({**added, "item": item}), b"".join(deltas)], native=True)
    run = out[-1]
    assert getattr(run, said) == "ab\nc"
    assert (run.native_count, run.native_number) == (3, 998)
    assert run.native == b"".join(deltas)


def test_a_whole_item_ends_a_run() -> None:
    *begin, last = stream_of([("a", {}), ("b", {})])
    item = {"type": "message", "id": "m1", "role": "assistant", "content": []}
    done = {"type": "response.output_item.done", "sequence_number": 4, "output_index": 0}
    again = {"type": "response.output_item.added", "sequence_number": 5, "output_index": 1}
    parts = [*begin, sent({**done, "item": item}), sent({**again, "item": item}), last]
    out, _ = read([b"".join(parts)], native=True)
    runs = [(event.native_number, event.native_count) for event in out if event.native_count]
    assert runs == [(1, 4), (5, 1)]
    assert natives(out) == natives(read(parts, native=True)[0])


def test_a_malformed_delta_in_a_run_is_refused() -> None:
    parts = stream_of([("a", {}), ("b", {}), ("c", {})])
    parts[4] = parts[4].replace(b'"c"', b'"\xff"')
    try:
        read([b"".join(parts)], native=True)
    except GatewayError:
        return
    raise AssertionError("it was read")
