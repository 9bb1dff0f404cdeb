"""Notes beside the turns: whole where there is room, bounded where there is little."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.memory.v1.memory_pb2 import Snippet
from services.common.text.tokens import estimate_tokens
from services.inference.memory.conversation import notes_of, quotes_of, truncate_to_tokens

DAY_MS = 86_400_000
TEXTS = st.text(max_size=600)


def snippet(turn: int, text: str) -> Snippet:
    return Snippet(turn=turn, text=text, created_at_ms=turn * DAY_MS)


def test_notes_hold_profile_and_summary_line_by_line() -> None:
    text = notes_of("name: Ada\ncity: Paris", "They met.", 4000)
    assert text.splitlines()[2:] == [
        "About the user:",
        "> name: Ada",
        "> city: Paris",
        "",
        "Earlier in this conversation:",
        "> They met.",
    ]


def test_either_may_be_missing() -> None:
    assert "About" not in notes_of("", "They met.", 4000)
    assert "Earlier" not in notes_of("name: Ada", " \n", 4000)
    assert notes_of("", "", 4000) == ""


@given(profile=TEXTS, summary=TEXTS, tokens=st.integers(0, 500))
def test_notes_keep_their_bound(profile: str, summary: str, tokens: int) -> None:
    assert estimate_tokens(notes_of(profile, summary, tokens)) <= tokens


@given(texts=st.lists(TEXTS, max_size=6), tokens=st.integers(0, 500))
def test_quotes_keep_their_bound(texts: list[str], tokens: int) -> None:
    snippets = [snippet(turn, text) for turn, text in enumerate(texts, 1)]
    assert estimate_tokens(quotes_of(snippets, tokens)) <= tokens


@given(text=TEXTS)
def test_every_line_of_quoted_text_is_marked(text: str) -> None:
    noted = notes_of("", f"a{text}", 10_000)
    quoted = noted[noted.index("\n> ") + 1 :]
    assert all(line.startswith("> ") or line == ">" for line in quoted.splitlines())


def test_best_snippets_are_quoted_in_turn_order() -> None:
    snippets = [snippet(9, "User: nine"), snippet(2, "User: two"), snippet(5, "User: five " * 500)]
    text = quotes_of(snippets, 200)
    assert text.index("Turn 2, 1970-01-03:\n> User: two") < text.index("Turn 9, 1970-01-10:")
    assert "five" not in text
    assert quotes_of([], 200) == ""


def test_the_best_alone_is_cut_where_it_is_too_long() -> None:
    text = quotes_of([snippet(1, "User: one " * 500)], 200)
    assert text.endswith("one …")
    assert 150 < estimate_tokens(text) <= 200


def test_a_long_profile_leaves_room_for_the_summary() -> None:
    text = notes_of("much " * 5000, "They met.", 300)
    assert text.endswith("> They met.")
    assert "much …" in text


@given(text=TEXTS, tokens=st.integers(0, 300))
def test_what_is_cut_is_a_beginning_within_the_bound(text: str, tokens: int) -> None:
    cut = truncate_to_tokens(text, tokens)
    assert estimate_tokens(cut) <= tokens
    assert cut == text or text.startswith(cut.removesuffix(" …"))


def test_a_cut_takes_whole_words_where_there_are_any() -> None:
    assert truncate_to_tokens("alpha beta gamma delta", 5) == "alpha …"
    assert truncate_to_tokens("字" * 100, 20).startswith("字字字字")
    assert truncate_to_tokens("alpha", 1) == ""
