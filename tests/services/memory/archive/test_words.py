import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.text.texts import normalized
from services.memory.archive.words import STOP_WORDS, located_terms, term_key, terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Running shoes", "a run in my shoe"),
        ("CAFÉ", "cafe\u0301"),
        ("\uff26\uff35\uff2c\uff2c", "full"),
        ("Straße", "STRASSE"),
        ("собаку", "собаки"),
        ("バイク", "ﾊﾞｲｸ"),
    ],
)
def test_forms_of_a_word_are_one_term(one: str, other: str) -> None:
    assert set(terms(one)) == set(terms(other)) != set()


def test_words_that_say_nothing_are_left_out() -> None:
    assert terms("What did you do with the, well, thing? I don't") == ["thing"]
    assert terms(" ".join(STOP_WORDS)) == []


def test_unspaced_scripts_give_bigrams_and_ideographs() -> None:
    assert terms("我的猫abc") == ["我的", "我", "的猫", "的", "猫", "abc"]
    assert terms("แมว") == ["แม", "มว"]
    assert terms("x猫y") == ["x", "猫", "y"]


def test_vowel_signs_do_not_cut_a_word() -> None:
    assert len(terms("हिन्दी")) == 1
    assert len(terms("திருவள்ளுவர்")) == 1


def test_a_long_run_of_letters_is_found_by_its_beginning() -> None:
    assert terms("a" * 10_000) == terms("a" * 40)


@given(st.text())
def test_terms_follow_each_other_within_any_text(text: str) -> None:
    last, text = 0, normalized("NFKC", text)
    for place, term in located_terms(text):
        assert last <= place < len(text)
        assert term in terms(text[place:])
        last = place


@given(st.text(), st.text())
def test_only_the_terms_that_are_wanted_are_located(text: str, wanted: str) -> None:
    text, chosen = normalized("NFKC", text), frozenset(terms(wanted))
    located = [(place, term) for place, term in located_terms(text) if term in chosen]
    assert list(located_terms(text, chosen)) == located


@given(st.text())
def test_terms_do_not_depend_on_the_form_of_a_text(text: str) -> None:
    assert terms(text) == terms(unicodedata.normalize("NFKC", text))


@given(st.text())
def test_the_terms_of_words_are_words(text: str) -> None:
    for term in terms(text):
        assert term
        assert not term.startswith("@")
        assert 0 <= term_key(term) < 1 << 63


def test_a_key_is_the_same_forever() -> None:
    # Keys are stored: this value may never change.
    assert term_key("memory") == 6736803147464396916
