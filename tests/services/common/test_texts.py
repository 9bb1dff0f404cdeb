"""Texts from outside: bounded, and always valid UTF-8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.texts import cut, fit, quoted

ANY_TEXT = st.text(st.characters(exclude_categories=[]))  # surrogates too


def test_a_short_text_is_left_alone():
    assert cut("abc", 3) == fit("abc", 3) == "abc"


def test_a_long_text_is_cut_with_an_ellipsis():
    assert cut("abcd", 3) == "abc…"
    assert fit("abcdefgh", 6) == "abc…"


@given(ANY_TEXT, st.integers(3, 20))
def test_what_fits_is_utf_8_of_so_many_bytes(text: str, most: int):
    assert len(fit(text, most).encode()) <= most


@given(st.text())
def test_a_text_that_fits_stays_as_it_is(text: str):
    assert fit(text, len(text.encode())) == text


@pytest.mark.parametrize("name", ["\ud800", "\0", "\r\n", "x" * (1 << 20)])
def test_a_quoted_name_is_short_and_printable(name: str):
    assert quoted(name).isprintable()
    assert len(quoted(name)) < 200
