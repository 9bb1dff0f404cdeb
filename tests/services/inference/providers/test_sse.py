from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.inference.providers.sse import (
    ServerSentEvent,
    SseSplitter,
    SseTooLongError,
    read_event,
)
from tests.grid import each_row
from tests.work import bytes_made

LIMIT = 1 << 10


def parse(stream: bytes, *cuts: int, limit: int = LIMIT) -> list[ServerSentEvent]:
    cutter = SseSplitter(limit)
    places = [0, *sorted(cuts), len(stream)]
    events: list[ServerSentEvent] = []
    for begin, end in pairwise(places):
        events += events_in(cutter.feed(stream[begin:end]))
    return events


def events_in(text: bytes) -> list[ServerSentEvent]:
    events: list[ServerSentEvent] = []
    at = 0
    while at < len(text):
        event, at = read_event(text, at)
        if event is not None:
            events.append(event)
    return events


def datas(stream: bytes) -> list[bytes]:
    return [event.data for event in parse(stream)]


def by_the_standard(stream: bytes) -> list[ServerSentEvent]:
    """The algorithm of the HTML standard, line by line, without any regard for speed.

    Other than in the standard, events whose data is white space are ignored.
    """
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[ServerSentEvent] = []
    name, data = b"", b""
    for line in text.split(b"\n")[:-1]:
        if not line:
            if data.strip():
                events.append(ServerSentEvent(name.decode() or "message", data[:-1]))
            name, data = b"", b""
        elif not line.startswith(b":"):
            field, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if field == b"data":
                data += value + b"\n"
            elif field == b"event":
                name = value
    return events


@each_row(
    ("text", "event"),
    [
        (b"event: a\ndata: {}\n\n", ("a", b"{}")),
        (b"event: \ndata: {}\n\n", ("message", b"{}")),
        (b"event: a\ndata:{}\n\n", ("a", b"{}")),
        (b"event: a\nid: 1\n\n", None),
        (b"data:\n\n", None),
        (b"data: \n\n", None),
        (b"data:  \n\n", None),
        (b"event: a\ndata: \n\n", None),
        (b"event: a\nid: 1\ndata:\ndata:\n\n", None),
        (b"event: a\xff\ndata: 1\ndata: 2\n\n", ("a\ufffd", b"1\n2")),
        (b"data: {}\nevent: a\n\n", ("a", b"{}")),
    ],
)
def test_events_with_a_name(text: bytes, event: tuple[str, bytes] | None) -> None:
    assert read_event(text, 0) == (event, len(text))


def test_several_events_in_one_chunk_come_in_order() -> None:
    assert parse(b'data: {"a":1}\n\ndata: {"b":2}\n\n') == [
        ("message", b'{"a":1}'),
        ("message", b'{"b":2}'),
    ]


def test_an_event_line_names_only_the_next_event() -> None:
    assert parse(b"event: ping\ndata: {}\n\ndata: x\n\n") == [("ping", b"{}"), ("message", b"x")]


def test_an_event_line_may_come_after_the_data() -> None:
    assert parse(b"data: {}\nevent: late\n\n") == [("late", b"{}")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_of_the_standard_ends_a_line(end: bytes) -> None:
    stream = end.join([b"event: a", b"data: 1", b"data: 2", b"", b"data: 3", b"", b""])
    assert parse(stream) == [("a", b"1\n2"), ("message", b"3")]


def test_comments_ids_retries_and_unknown_fields_go() -> None:
    assert datas(b": hi\n\nid: 7\nretry: 3\nfoo: x\ndata: y\n\n:\n\n") == [b"y"]


def test_only_one_space_after_the_colon_is_removed() -> None:
    assert datas(b"data:a\n\ndata:  b\n\n") == [b"a", b" b"]


def test_a_split_byte_order_mark_is_removed() -> None:
    stream = b"\xef\xbb\xbfdata: x\n\n"
    assert parse(stream) == parse(stream, 1) == parse(stream, 1, 2) == [("message", b"x")]


def test_a_split_crlf_is_no_blank_line() -> None:
    assert parse(b"data: a\r\ndata: b\r\n\r\n", 8) == [("message", b"a\nb")]


def test_an_event_comes_with_its_blank_line_and_not_before() -> None:
    cutter = SseSplitter(LIMIT)
    assert cutter.feed(b"data: x\n") == b""
    assert events_in(cutter.feed(b"\ndata: y")) == [("message", b"x")]


@pytest.mark.parametrize("cuts", [(), (5,), (LIMIT + 2,), (LIMIT + 7,)])
def test_an_event_over_the_bound_fails_however_it_is_cut(cuts: tuple[int, ...]) -> None:
    with pytest.raises(SseTooLongError):
        parse(b"data: " + b"x" * (LIMIT - 5) + b"\n\n", *cuts)


def test_an_oversized_event_of_short_lines_fails() -> None:
    with pytest.raises(SseTooLongError):
        parse(b"data: 12345678\n" * (LIMIT // 15 + 1))


def test_an_event_over_the_bound_fails_before_its_end() -> None:
    with pytest.raises(SseTooLongError):
        SseSplitter(LIMIT).feed(b"x" * (LIMIT + 2))


@pytest.mark.parametrize("cuts", [(), (5,), (LIMIT,), (LIMIT + 1,), (LIMIT + 2,), (LIMIT + 3,)])
def test_events_of_just_the_bound_pass_however_they_are_cut(cuts: tuple[int, ...]) -> None:
    event = b"data: " + b"x" * (LIMIT - 6)
    assert parse((event + b"\n\n") * 2, *cuts) == [("message", event[6:])] * 2


def test_a_line_in_many_pieces_is_put_together_once() -> None:
    def made(pieces: int) -> int:
        stream = b"data: " + b"x" * 64 * pieces + b"\n\n"
        cuts = range(0, len(stream), 64)
        return bytes_made(lambda: parse(stream, *cuts, limit=len(stream)), "providers/sse.py")

    # Put together at each piece, eight times the line would be 64 times the bytes.
    assert made(800) < 9 * made(100)


fragments = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"data",
        b"event: a",
        b"event:",
        b": c",
        b"id: 1",
        b'{"a":"b"}',
        b"\xc3\xa9",
    ]
    + [b"\n"] * 4
    + [b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b" ", b":", b"\xef\xbb\xbf"]
)


@given(st.lists(fragments, max_size=40).map(b"".join), st.lists(st.integers(0, 200), max_size=12))
def test_any_stream_cut_anywhere_gives_what_the_standard_says(
    stream: bytes, cuts: list[int]
) -> None:
    places = [cut for cut in cuts if cut <= len(stream)]
    # At its very end the standard's line splitting and ours agree: what has no line end is no line.
    assert parse(stream, *places) == by_the_standard(stream)


def test_an_event_of_far_too_many_lines_is_refused() -> None:
    cutter = SseSplitter(1 << 25)
    with pytest.raises(SseTooLongError):
        cutter.feed(b"data\n" * 300_000 + b"\n")


@pytest.mark.parametrize(
    "nothing", [b"\n", b": a\n\n", b"id: 1\n\n", b"event: ping\nid: 1\n:\n\n", b"x\n\n"]
)
def test_what_dispatches_nothing_is_passed_over_at_once(nothing: bytes) -> None:
    text = nothing * 1000 + b"event: a\ndata: b\n\n"
    sent, at = read_event(text, 0)
    assert sent is None
    assert read_event(text, at) == (ServerSentEvent("a", b"b"), len(text))
