"""Texts from outside: bounded, always valid UTF-8, and normalised in linear time."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.text.texts import cut, fit, normalized, parse_digits, quoted
from tests.grid import each_row

ANY_TEXT = st.text(st.characters(exclude_categories=[]))  # surrogates too


def test_a_short_text_is_left_alone():
    assert cut("abc", 3) == fit("abc", 3) == "abc"


def test_a_long_text_is_cut_with_an_ellipsis():
    assert cut("abcd", 3) == "abc…"
    assert fit("abcdefgh", 6) == "abc…"


@each_row("text", ["", "²", "٣", "1²", "-1", "1.0", " 1", "1_0", "9" * 5_000])
def test_other_texts_than_ascii_digits_are_no_number(text: str):
    assert parse_digits(text) is None


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("999999999", 999_999_999)])
def test_ascii_digits_are_a_number(text: str, number: int):
    assert parse_digits(text) == number


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


@given(st.text(), st.sampled_from(["NFC", "NFKC"]))
def test_a_usual_text_is_normalised_as_unicode_says(text: str, form: str):
    assert normalized(form, text) == unicodedata.normalize(form, text)


def test_long_runs_of_combining_characters_stay_as_they_are():
    run = "\u0300\u0316" * 100_000  # takes seconds to put in order
    # Not compared by `assert` itself, which would take minutes to show a difference.
    assert hash(normalized("NFC", f"e\u0301 {run}")) == hash(f"\u00e9 {run}")
    run = "\u0300\u0316" * 1_000
    assert normalized("NFC", f"e\u0301 {run} e\u0301") == f"\u00e9 {run} \u00e9"


def test_every_combining_character_can_be_in_a_long_run():
    # What `normalized` looks for: neither a letter nor white space.
    for code in range(0x110000):
        if unicodedata.combining(chr(code)):
            assert not (chr(code).isalnum() or chr(code).isspace() or code < 128)
