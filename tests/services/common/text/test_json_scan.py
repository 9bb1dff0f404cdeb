"""Laws of the scan: it counts what a parser would make, however it is sliced."""

import json
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.text import json_scan
from services.common.text.json_scan import count_values, upper_bound

MANY = 10**9

texts = st.text(alphabet=st.sampled_from('a,[]{}":\\ \n\u00e9')) | st.text()
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=30,
)
styles = st.sampled_from(
    [{}, {"separators": (",", ":")}, {"indent": 2}, {"separators": (" , ", " : ")}]
)


def size(value: object) -> int:
    """Return the number of values in parsed JSON."""
    if isinstance(value, dict):
        return 1 + sum(size(inner) for inner in value.values())
    if isinstance(value, list):
        return 1 + sum(size(inner) for inner in value)
    return 1


@given(value=values, style=styles, ascii_only=st.booleans(), cut=st.integers(1, 20))
def test_the_count_is_that_of_the_parsed_tree(value, style, ascii_only, cut):
    text = json.dumps(value, ensure_ascii=ascii_only, **style).encode()
    with patch.object(json_scan, "_SLICE", cut):
        assert count_values(text, MANY) == size(value)
    assert upper_bound(text) >= size(value)


@given(value=values, rest=st.binary(max_size=20), cut=st.integers(1, 20))
def test_tokens_before_an_error_are_counted(value, rest, cut):
    """A parser makes the values before an error, so that they must count."""
    text = b"[" + json.dumps(value).encode() + b"," + rest
    with patch.object(json_scan, "_SLICE", cut):
        assert count_values(text, MANY) >= 1 + size(value)


@pytest.mark.parametrize(
    ("text", "count"),
    [(b"1", 1), (b"[ ]", 1), (b'{"a": {}}', 2), (b'["a"]', 2), (b'["\\\\", "\\",[{"]', 3)],
)
def test_examples(text, count):
    assert count_values(text, MANY) == count


def test_the_count_stops_above_the_limit():
    text = b"[" + b"1," * 2_000_000 + b"1]"
    assert 10 < count_values(text, 10) < 200_000
