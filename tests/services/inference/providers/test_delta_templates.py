from typing import Any

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from services.inference.providers.delta_templates import DeltaTemplates, delta_of
from services.inference.providers.sse import read_event
from tests.grid import each_row

MANY = 20


def extract_delta(told: Any) -> str | None:
    """Return what is at `a.t`."""
    match told:
        case {"a": {"t": str(text)}}:
            return text
    return None


def sent(json: bytes | dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % (json if isinstance(json, bytes) else orjson.dumps(json))


def says(text: str, **fields: Any) -> bytes:
    return sent({"id": "x1", "a": {"n": 0, "t": text, "m": None}, **fields})


def knowing(event: bytes, text: str, padding: str = "") -> DeltaTemplates:
    templates = DeltaTemplates(extract_delta, padding)
    templates.learn(event, text)
    return templates


def known(templates: DeltaTemplates, stream: bytes) -> list[bytes]:
    """Return what events at the beginning of a stream say that are known."""
    pieces, end = templates.repeats(stream, 0)
    assert bool(pieces) == bool(end)
    return pieces


def test_known_events_end_at_the_first_different_frame() -> None:
    templates = knowing(says("hello"), "hello")
    stream = says(" wor") + says("ld") + says("!", id="x2") + says("?")
    assert templates.repeats(stream, 0) == ([b" wor", b"ld"], len(says(" wor") + says("ld")))


def test_events_are_known_from_the_middle_of_a_text_on() -> None:
    templates = knowing(says("hello"), "hello")
    before = sent(b"{}")
    assert templates.repeats(before + says("a"), len(before)) == ([b"a"], len(before + says("a")))
    assert templates.repeats(before + says("a"), 0) == ([], 0)


@each_row(
    "letters",
    [
        b"a",
        b" ",
        b"\x7f",
        b'\\"\\\\\\/\\b\\f\\n\\r\\t',
        b"\\u003c\\u00E9\\uFFff",
        b"\\ud83d\\uDE00",
        "é€\U0001f600".encode(),
        b'\\"}}\\n\\ndata: {}',
    ],
)
def test_the_inside_of_a_valid_string_is_given_as_it_is(letters: bytes) -> None:
    around = says("hello")
    assert known(knowing(around, "hello"), around.replace(b"hello", letters)) == [letters]


@each_row(
    "letters",
    [
        b"",
        b'"',
        b"\\",
        b'a\\\\"',
        b'a\\"\\',
        b"\\x",
        b"\\u12",
        b"\\u12g4",
        b"\\ud83d",
        b"\\ude00",
        b"\\ud83d\\ud83d",
        b"\x00",
        b"\t",
        b"\x1f",
        b"\n",
        b"a\nb",
        b"\r",
        b"\xff",
        b"\x80",
        b"\xc3",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b'a","t":"b',
    ],
)
def test_what_is_no_string_or_says_nothing_is_not_known(letters: bytes) -> None:
    around = says("hello")
    assert known(knowing(around, "hello"), around.replace(b"hello", letters)) == []


def test_a_split_character_is_not_matched() -> None:
    around = says("hello")
    stream = around.replace(b"hello", b"\xc3") + around.replace(b"hello", b"\xa9")
    assert known(knowing(around, "hello"), stream) == []


def test_an_event_cut_off_is_not_known() -> None:
    templates = knowing(says("hello"), "hello")
    assert known(templates, says("a") + says("b")[:-1]) == [b"a"]


def test_a_text_that_holds_the_frame_is_a_text() -> None:
    inside = says("a").decode()
    stream = says(inside) + says("b")
    pieces = known(knowing(says("hello"), "hello"), stream)
    assert [orjson.loads(b'"%b"' % piece) for piece in pieces] == [inside, "b"]


@each_row(
    ("event", "text"),
    [
        (says("hello", b="hello"), "hello"),
        (sent(b'{"a":{"t":"\\u0068i"},"b":"hi"}'), "hi"),
        (sent(b'{"a":{"t":"hi"},"b":"\\"hi"}'), "hi"),
        (sent(b'{"a":{"t":"?"},"b":"hi"}'), "hi"),
        (sent(b'{"a":{"t":"hi","t":"b"}}'), "hi"),
        (sent(b'{"a":{"t":"hi"},"a":{"t":"b"}}'), "hi"),
        (sent(b'{"a":{"t":["hi"]}}'), "hi"),
        (sent(b'{"a":{"hi":1,"t":"b"}}'), "hi"),
        (sent(b'{"a":{"t":"b"}} "hi"'), "hi"),
        (b': "hi"\ndata: {"a":{"t":"b"}}\n\n', "hi"),
        (b': "hi"\n\n', "hi"),
    ],
)
def test_no_template_is_learnt_if_another_string_varies(event: bytes, text: str) -> None:
    templates = knowing(event, text)
    assert known(templates, event) == []


def test_a_text_like_the_probe_is_not_learnt_from() -> None:
    event = sent(b'{"a":{"t":"\\u003f"},"b":"?"}')
    assert known(knowing(event, "?"), event) == []


def test_a_template_is_found_when_a_key_holds_the_text() -> None:
    assert known(knowing(says("id"), "id"), says("b")) == [b"b"]


def test_an_event_of_several_lines_is_known_by_all_of_them() -> None:
    event = b'event: d\nid: 7\ndata: {"a":\ndata: {"t":"hi"}}\n\n'
    templates = knowing(event, "hi")
    assert known(templates, event.replace(b"hi", b"ho") + event.replace(b"d\n", b"e\n")) == [b"ho"]


def test_what_is_forgotten_is_not_known() -> None:
    templates = knowing(says("hello"), "hello")
    templates.has_learnt = False
    assert known(templates, says("a")) == []


def test_padding_at_the_end_may_be_anything_plain() -> None:
    templates = knowing(says("hello", pad="x1Y+/=_-z"), "hello", "pad")
    stream = says("a", pad="Q") + says("b", pad="") + says("c", pad="7" * 99) + says("d", pad='"')
    assert known(templates, stream + says("e", pad="ok")) == [b"a", b"b", b"c"]


def test_padding_elsewhere_than_at_the_end_has_to_recur() -> None:
    templates = knowing(says("hello", pad="x", b=1), "hello", "pad")
    assert known(templates, says("a", pad="y", b=1) + says("b", pad="y", b=2)) == [b"a"]
    templates = knowing(sent({"pad": "x", "a": {"t": "hi"}}), "hi", "pad")
    assert known(templates, sent({"pad": "y", "a": {"t": "hi"}})) == []


def test_another_member_than_the_padding_has_to_recur() -> None:
    templates = knowing(says("hello", pad="x"), "hello")
    assert known(templates, says("a", pad="y")) == []


def test_padding_that_the_text_holds_is_text() -> None:
    inside = 'x","pad":"y'
    templates = knowing(says("hello", pad="x"), "hello", "pad")
    assert known(templates, says(inside, pad="z")) == [orjson.dumps(inside)[1:-1]]


def test_learning_stops_for_frames_that_never_recur() -> None:
    def learn(templates: DeltaTemplates, number: int) -> bytes:
        event = says("hello", id=f"x{number}")
        templates.learn(event, "hello")
        return event

    templates = DeltaTemplates(extract_delta)
    for number in range(MANY):
        assert known(templates, learn(templates, number).replace(b"x", b"y")) == []
    assert known(templates, learn(templates, MANY)) == []
    templates = DeltaTemplates(extract_delta)
    for number in range(MANY):
        assert known(templates, learn(templates, number)) == [b"hello"]


def test_several_pieces_become_one_event() -> None:
    event = delta_of(1, 2, "thinking", [b"a\\n", "é".encode(), b"\\u00e9"])
    assert (event.choice, event.block, event.thinking) == (1, 2, "a\néé")
    assert list(event.pieces) == [b"a\\n", "é".encode(), b"\\u00e9"]
    event = delta_of(0, 0, "input", [b'{\\"a'])
    assert (event.input, list(event.pieces)) == ('{"a', [])


members = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"t", b"pad", b"\\u0061", b"hi"]),
        st.sampled_from(
            [b'"hi"', b'"ho"', b'"?"', b'"\\u0068i"', b'"\\"hi"', b"1", b"null", b"%o"]
        ),
    ),
    max_size=4,
)


def json_of(tree: list[list[tuple[bytes, bytes]]]) -> bytes:
    """Write objects, each where the one before has its place for one; names may repeat."""
    written = b"%o"
    for fields in tree:
        inside = b",".join(b'"%b":%b' % field for field in fields)
        written = written.replace(b"%o", b"{%b}" % inside, 1)
    return written.replace(b"%o", b'{"t":"hi"}')


@given(
    st.lists(members, max_size=4).map(json_of),
    st.sampled_from(["hi", "ho", "?"]),
    st.sampled_from(["", "pad"]),
    st.lists(st.binary(max_size=6) | st.sampled_from([b"hi", b'b","t":"c', b"\\", b"?"])),
    st.binary(max_size=3),
)
@example(b'{"a":{"t":"hi"},"pad":"hi"}', "hi", "pad", [b"b"], b"")
def test_known_frames_yield_the_events_of_parsing(
    json: bytes, text: str, padding: str, others: list[bytes], end: bytes
) -> None:
    event = sent(json)
    templates = knowing(event, text, padding)
    marked = event.replace(b'"%b"' % text.encode(), b'"\xff"')
    stream = b"".join(marked.replace(b"\xff", other) for other in [b"x", *others]) + end
    pieces, stop = templates.repeats(stream, 0)
    at = 0
    for piece in pieces:
        read, at = read_event(stream, at)
        assert read is not None
        assert extract_delta(orjson.loads(read.data)) == orjson.loads(b'"%b"' % piece) != ""
    assert at == stop


@given(
    st.lists(
        st.one_of(
            st.sampled_from([b"a", b"b ", b"\\n", b'\\"']),
            st.sampled_from([b"", b'"', b"a\nb", b"\n", b"\xc3", b"\xa9", b"\x00", b"\\"]),
            st.sampled_from([b'x"}}\n\ndata: {"a":{"n":0,"t":"y', b"\xff"]),
        ),
        max_size=6,
    ),
    st.integers(0, 5),
    st.booleans(),
)
@example([b"a", b"b ", b"a\nb", b"a"], 0, False)
def test_many_events_are_known_as_each_of_them_is(
    letters: list[bytes], cut: int, with_another: bool
) -> None:
    event = says("hello")
    events = [event.replace(b"hello", each) for each in letters]
    if with_another:
        events.insert(len(events) // 2, says("a", id="x2"))
    if cut and events:
        events[-1] = events[-1][:-cut]
    expected = []
    for each in events:
        alone = known(knowing(event, "hello"), each)
        expected += alone
        if not alone:
            break
    assert known(knowing(event, "hello"), b"".join(events)) == expected
