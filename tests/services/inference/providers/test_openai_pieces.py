"""How texts that came in one read stay in pieces, wherever a stream is cut."""

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.inference.v1.inference_pb2 import Event
from services.inference.providers.sse import SseSplitter
from tests.services.inference.providers.openai_answers import (
    answer,
    calls,
    chunk,
    data,
    delta,
    read,
    reader_of,
    says,
    told,
)


def pieces_of(events: Iterable[Event]) -> list[tuple[str, list[bytes]]]:
    """Return the deltas, each as its kind and its pieces."""
    deltas = [event for event in events if event.text or event.thinking or event.input]
    return [(event.WhichOneof("kind") or "", list(event.pieces)) for event in deltas]


def test_deltas_of_one_kind_in_a_read_become_one_event() -> None:
    events = read(
        says(role="assistant", content=""),
        *(says(reasoning_content=word) for word in "abc"),
        *(says(content=word) for word in "def\n"),
        says(**calls(0, id="c1", name="f")),
        *(says(**calls(0, word)) for word in ("[", "1", "]")),
        *(says(content=word) for word in "ghi"),
        says("stop"),
        b"[DONE]",
    )
    assert pieces_of(events) == [
        ("thinking", []),
        ("thinking", [b"b", b"c"]),
        ("text", []),
        ("text", [b"e", b"f", b"\\n"]),
        ("input", []),
        ("input", [b"1", b"]"]),
        ("text", []),
        ("text", [b"h", b"i"]),
    ]
    assert told(events)[-4:-2] == [("text", "g"), ("text", "hi")], "the call was done"


def test_chunks_that_differ_in_padding_become_one_event() -> None:
    words = [says(content=word) | {"obfuscation": word * 3} for word in "abcd"]
    assert pieces_of(read(*words, says("stop"))) == [("text", []), ("text", [b"b", b"c", b"d"])]


def test_usage_in_every_chunk_is_not_lost() -> None:
    words = [says(content=word) | {"usage": {"prompt_tokens": 7}} for word in "abc"]
    events = read(*words, says("stop"))
    assert [kind for kind, _ in told(events)].count("usage") == 3
    assert answer(events).choices[0].blocks[0].text == "abc"


def test_log_probabilities_that_recur_are_not_lost() -> None:
    logprobs = {"logprobs": {"content": [{"token": "a"}]}}
    events = read(*(chunk(delta(content="a") | logprobs) for _ in range(3)), says("stop"))
    assert sum(bool(event.logprobs) for event in events) == 3


STREAM = data(
    says(role="assistant", content=""),
    says(reasoning="hm \u00e4\u20ac"),
    says(content="a\U0001f600"),
    says(**calls(0, '{"a', id="c1", name="f")),
    says(**calls(1, '{"b', id="c2", name="g")),
    says(**calls(0, '":1}')),
    says(**calls(1, '":2}')),
    says("tool_calls"),
    chunk(usage={"prompt_tokens": 3, "completion_tokens": 4}),
    b"[DONE]",
)


def through_the_cutter(pieces: Iterable[bytes]) -> list[Event]:
    cutter, reader, events = SseSplitter(1 << 16), reader_of(), list[Event]()
    for piece in pieces:
        reader.feed(cutter.feed(piece), events)
    reader.end([])
    return events


@given(st.lists(st.integers(0, len(STREAM)), max_size=20).map(sorted))
def test_a_stream_cut_anywhere_gives_the_same_events(cuts: list[int]) -> None:
    places = [0, *cuts, len(STREAM)]
    pieces = (STREAM[a:b] for a, b in pairwise(places))
    assert through_the_cutter(pieces) == through_the_cutter([STREAM])
