"""Runs of text deltas say what their events say one by one."""

from collections.abc import Sequence
from typing import Any

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import GatewayError
from services.inference.providers.openai_responses.runs import (
    SEPARATOR,
    TEXT_DELTA,
    place_of,
    run_of,
)
from tests.services.inference.providers.openai_responses.responses_answers import (
    answer,
    reader_of,
    response,
)

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
    reader = reader_of(takes_passthrough=native)
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
    assert answer(together[0]) == answer(alone)
    passed, expected = (
        [one for event in events if event.native for one in event.native.split(SEPARATOR)]
        for events in (together[0], alone)
    )
    assert passed == expected
    assert bool(passed) is native


def test_a_run_ends_before_another_delta() -> None:
    parts = stream_of([("a", {}), ("b", {}), ("c", {"sequence_number": 9}), ("d", {})])
    begin = len(b"".join(parts[:2]))
    text = b"".join(parts)
    run = run_of(text, begin, place_of(text, begin))
    assert run.joined()["delta"] == "ab"
    assert text[run.end :].startswith(parts[4])


def test_a_malformed_delta_in_a_run_is_refused() -> None:
    parts = stream_of([("a", {}), ("b", {}), ("c", {})])
    parts[4] = parts[4].replace(b'"c"', b'"\xff"')
    try:
        read([b"".join(parts)], native=True)
    except GatewayError:
        return
    raise AssertionError("it was read")
