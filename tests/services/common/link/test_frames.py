"""What goes over a link: every frame comes back as it went, and nothing else is let through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.link import frames
from services.common.link.frames import FrameError

numbers = st.integers(0, frames.MAX_CALL)
keys = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
entries = st.one_of(
    st.tuples(keys.filter(lambda key: not key.endswith("-bin")), st.text(max_size=50)),
    st.tuples(keys.map(lambda key: key + "-bin"), st.binary(max_size=50)),
)
metadata = st.lists(entries, max_size=5).map(tuple)


def parts(batch: bytes) -> list:
    """Take a batch apart, down to what its frames hold."""
    read = {
        frames.OPEN: frames.read_open,
        frames.MESSAGE: frames.read_message,
        frames.CREDIT: frames.read_credit,
        frames.HEADERS: frames.read_metadata,
        frames.STATUS: frames.read_status,
    }
    found = []
    for call, kind, at, stop in frames.scan(batch):
        content = read[kind](batch, at, stop) if kind in read else batch[at:stop]
        found.append((call, kind, content))
    return found


@st.composite
def written(draw):
    """Give a frame as bytes, and what it must be read as."""
    call, content = draw(numbers), draw(st.binary(max_size=80))
    match draw(st.integers(frames.OPEN, frames.GOAWAY)):
        case frames.OPEN:
            method = draw(st.text(max_size=40))
            deadline = draw(st.none() | st.integers(1, frames.MAX_CALL))
            one, sent = draw(st.booleans()), draw(metadata)
            packed = frames.pack_metadata(sent)
            raw = frames.open_call(call, method.encode(), packed, deadline, one_message=one)
            return raw, (call, frames.OPEN, (method, sent, deadline, one))
        case frames.MESSAGE:
            size = draw(numbers)
            raw = frames.message_header(call, size, len(content)) + content
            return raw, (call, frames.MESSAGE, (size, content))
        case frames.MORE:
            raw = frames.more_header(call, len(content)) + content
            return raw, (call, frames.MORE, content)
        case frames.CREDIT:
            size = draw(numbers)
            return frames.credit(call, size), (call, frames.CREDIT, size)
        case frames.HEADERS:
            sent = draw(metadata)
            return frames.headers(call, frames.pack_metadata(sent)), (call, frames.HEADERS, sent)
        case frames.STATUS:
            code, text, sent = draw(st.integers(0, 16)), draw(st.text(max_size=40)), draw(metadata)
            raw = frames.status(call, code, text, frames.pack_metadata(sent))
            return raw, (call, frames.STATUS, (code, text, sent))
        case kind:
            return frames.bare(call, kind), (call, kind, b"")


@given(st.lists(written(), max_size=8))
def test_frames_are_read_as_they_were_written(sent):
    assert parts(b"".join(raw for raw, _ in sent)) == [read for _, read in sent]


@given(st.lists(written(), min_size=1, max_size=4), st.data())
def test_a_batch_that_is_cut_is_refused_unless_between_frames(sent, data):
    whole = b"".join(raw for raw, _ in sent)
    cut = data.draw(st.integers(0, len(whole) - 1))
    ends, at = [0], 0
    for raw, _ in sent:
        at += len(raw)
        ends.append(at)
    if cut in ends:
        assert parts(whole[:cut]) == [read for _, read in sent[: ends.index(cut)]]
    else:
        with pytest.raises(FrameError):
            parts(whole[:cut])


@given(st.binary(max_size=200))
def test_anything_else_is_refused_and_never_fails_otherwise(raw):
    try:
        parts(raw)
    except FrameError:
        pass


@given(st.lists(written(), min_size=1, max_size=3), st.data())
def test_a_changed_byte_is_refused_or_read_as_something(sent, data):
    raw = bytearray(b"".join(raw for raw, _ in sent))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        parts(bytes(raw))
    except FrameError:
        pass


@pytest.mark.parametrize("deadline", [0, -5])
def test_a_deadline_that_has_passed_is_sent_as_the_shortest(deadline):
    raw = frames.open_call(1, b"/a/b", b"", deadline, one_message=True)
    assert parts(raw) == [(1, frames.OPEN, ("/a/b", (), 1, True))]


def test_metadata_is_bounded_in_one_entry_and_in_many():
    most = frames.MAX_METADATA
    for sent in [[("a", "x" * most)], [("a", "x" * (most // 4))] * 4]:
        with pytest.raises(frames.MetadataTooLargeError):
            frames.pack_metadata(sent)
    assert len(frames.pack_metadata([("a", "x" * (most - 7))])) == most
    twice = frames.pack_metadata([("a", "x" * (most - 100))]) * 2
    with pytest.raises(FrameError):
        frames.read_metadata(twice, 0, len(twice))


def test_a_key_that_says_bytes_takes_a_text_as_utf_8():
    raw = frames.pack_metadata([("a-bin", "ä")])
    assert frames.read_metadata(raw, 0, len(raw)) == (("a-bin", "ä".encode()),)
