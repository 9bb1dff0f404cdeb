from hypothesis import given
from hypothesis import strategies as st

from services.common.text.tokens import estimate_tokens
from services.memory.archive.snippets import CUT, cut_to_budget
from services.memory.archive.words import terms

TEXTS = st.lists(st.text(st.sampled_from("ab é猫😀 \n.ZX9"), max_size=400), max_size=6)


@given(TEXTS, st.integers(0, 500))
def test_cut_texts_fit_the_budget_and_are_substrings(texts: list[str], most: int) -> None:
    cuts = cut_to_budget(texts, frozenset({"zx9", "猫"}), most)
    assert sum(map(estimate_tokens, cuts)) <= most
    for text, part in zip(texts, cuts, strict=True):
        assert part == text or part.strip(CUT) in text


@given(TEXTS)
def test_texts_that_fit_stay_whole(texts: list[str]) -> None:
    assert cut_to_budget(texts, frozenset(), sum(map(estimate_tokens, texts))) == texts


def test_a_long_text_is_cut_around_what_was_asked_for() -> None:
    filler = "nothing much happened then " * 500
    text = f"{filler} dogs {filler} the cat Rufus bit a dog {filler}"
    [part] = cut_to_budget([text], frozenset({"cat", "rufus", "dog"}), 60)
    assert "the cat Rufus bit a dog" in part
    assert part.startswith(CUT)
    assert part.endswith(CUT)
    assert 50 <= estimate_tokens(part) <= 60
    assert abs(part.index("Rufus") - len(part) // 2) < 20


def test_terms_are_located_in_whatever_form_they_are_written() -> None:
    # U+0E33 is two characters in form NFKC.
    filler = "ขค " * 400
    [part] = cut_to_budget([f"{filler}กำ {filler}"], frozenset(terms("กำ")), 60)
    assert "กำ" in part


def test_window_maximizes_distinct_terms_not_repetitions() -> None:
    filler = "nothing much happened then " * 40
    repeated = "cat " * 6
    text = f"{repeated}{filler}a dog {filler} the cat and a dog {filler} {repeated}"
    [part] = cut_to_budget([text], frozenset({"cat", "dog"}), 25)
    assert "the cat and a dog" in part


def test_the_beginning_and_the_end_need_no_mark() -> None:
    filler = "nothing much happened then " * 50
    assert cut_to_budget(["rufus " + filler], frozenset({"rufus"}), 20)[0].startswith("rufus")
    assert cut_to_budget([filler + "rufus!"], frozenset({"rufus"}), 20)[0].endswith("rufus!")


def test_short_texts_leave_their_share_to_long_ones() -> None:
    long = "word " * 1000
    parts = cut_to_budget(["short", long, long], frozenset(), 500)
    sizes = [estimate_tokens(part) for part in parts]
    assert parts[0] == "short"
    assert min(sizes[1:]) > 240


def test_one_word_without_end_is_cut_too() -> None:
    [part] = cut_to_budget(["q" * 10_000], frozenset(), 40)
    assert 30 <= estimate_tokens(part) <= 40
    [part] = cut_to_budget(["😀" * 5000], frozenset(), 40)
    assert 30 <= estimate_tokens(part) <= 40
    [part] = cut_to_budget(["猫" * 2000 + "犬" + "猫" * 2000], frozenset({"犬"}), 40)
    assert "犬" in part
