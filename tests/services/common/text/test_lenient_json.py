import json

from hypothesis import given
from hypothesis import strategies as st

from services.common.text.lenient_json import SplitCharacters, parse_leniently
from tests.grid import each_row

# Strings with halves of surrogate pairs.
TEXTS = st.text(st.sampled_from("a\u00fc\U0001f525\ud83d\udd25"), max_size=8)


@each_row(
    ("text", "value"),
    [
        (b'{"a":NaN,"b":[Infinity,-Infinity]}', {"a": None, "b": [None, None]}),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{"a":"x\\ud83d"}', {"a": "x\ufffd"}),
        (b'{"\\udd25":"\\udd25x"}', {"\ufffd": "\ufffdx"}),
        (b'{"a":"\\ud83d\\udd25","b":NaN}', {"a": "\U0001f525", "b": None}),
        (b'{"a":NaN', None),
        (b"{'a':1}", None),
        (b'{"a":\xff,"b":NaN}', None),
        (b"[" * 100_000 + b"NaN", None),
    ],
)
def test_common_deviations_are_read(text: bytes, value: object) -> None:
    assert parse_leniently(text) == value


def text_of(characters: SplitCharacters, text: str) -> str:
    """Return what the event of a text adds."""
    data = json.dumps({"delta": {"text": text}}).encode()
    try:
        data.decode()
        value = json.loads(data)
        value["delta"]["text"].encode()
    except UnicodeEncodeError:
        value = characters.parse(data)
    else:
        characters.complete(value)
    added = value["delta"]["text"]
    assert isinstance(added, str)
    return added


def test_halves_in_two_events_are_joined() -> None:
    characters = SplitCharacters()
    assert [text_of(characters, text) for text in ("a\ud83d", "\udd25b", "c")] == [
        "a",
        "\U0001f525b",
        "c",
    ]
    assert not characters.is_waiting


def test_a_half_without_the_other_is_replaced() -> None:
    characters = SplitCharacters()
    assert [text_of(characters, text) for text in ("a\ud83d", "", "b")] == ["a", "", "\ufffdb"]


def test_half_of_a_character_in_a_type_stays_there() -> None:
    characters = SplitCharacters()
    value = characters.parse(b'{"delta": {"type": "\\ud800", "text": "a"}}')
    assert value == {"delta": {"type": "\ufffd", "text": "a"}}
    # The type of the next event is its own.
    assert not characters.is_waiting


@given(st.lists(TEXTS, max_size=5))
def test_pieces_read_like_their_joined_text(pieces: list[str]) -> None:
    characters = SplitCharacters()
    joined = "".join(text_of(characters, piece) for piece in pieces)
    whole = "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert joined == whole.removesuffix("\ufffd") or joined == whole
