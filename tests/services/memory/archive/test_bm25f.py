import math
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from services.memory.archive.bm25f import Collection, score_turns
from services.memory.archive.postings import pack

# How often each of three terms comes up in a turn, and how many other terms it has.
Turns = dict[int, tuple[int, int, int, int]]
COUNTS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 30))
TURNS = st.dictionaries(st.integers(1, 40), COUNTS, min_size=1, max_size=12)


def found(turns: Turns) -> list[bytes]:
    def of(term: int) -> Iterator[bytes]:
        return (pack(turn, own[term], sum(own)) for turn, own in turns.items() if own[term])

    return [b"".join(of(term)) for term in range(3)]


def scored(
    turns: Turns, before_turn: int = 99, recency: float = 0.0, most: int = 99
) -> dict[int, float]:
    collection = Collection(len(turns), sum(map(sum, turns.values())))
    return score_turns(
        found(turns), collection, before_turn=before_turn, recency=recency, most=most
    )


def by_the_book(turns: Turns) -> dict[int, float]:
    """Return the scores of BM25F, computed for one turn and one term at a time."""
    mean = sum(map(sum, turns.values())) / len(turns)

    def frequency(turn: int, term: int) -> float:
        counts = turns.get(turn, (0, 0, 0, 0))
        return counts[term] / (0.6 + 0.4 * sum(counts) / mean)

    scores = dict.fromkeys(range(50), 0.0)
    for term in range(3):
        spread = {
            turn: frequency(turn, term)
            + 0.5 * frequency(turn - 1, term)
            + 0.3 * frequency(turn + 1, term)
            for turn in scores
        }
        having = min(len(turns), sum(1 for value in spread.values() if value))
        rarity = math.log(1 + (len(turns) - having + 0.5) / (having + 0.5))
        for turn, value in spread.items():
            scores[turn] += rarity * value / (1.2 + value)
    return {turn: score for turn, score in scores.items() if score}


@given(TURNS)
def test_scores_are_those_of_bm25f(turns: Turns) -> None:
    assume(all(map(sum, turns.values())))
    assert scored(turns) == pytest.approx(by_the_book(turns))


@given(TURNS)
def test_turns_may_be_stored_in_any_order(turns: Turns) -> None:
    backwards = dict(reversed(turns.items()))
    assert scored(backwards) == pytest.approx(scored(turns))


@given(TURNS, st.integers(0, 45), st.integers(1, 5))
def test_later_turns_stay_out_and_the_best_others_stay(
    turns: Turns, before_turn: int, most: int
) -> None:
    whole = [turn for turn in scored(turns) if turn < before_turn]
    assert list(scored(turns, before_turn, most=most)) == whole[:most]


def test_of_equals_the_later_comes_first() -> None:
    turns = dict.fromkeys(range(1, 90, 3), (1, 0, 0, 5))
    order = list(scored(turns, before_turn=90, most=3))
    assert order == [88, 85, 82]


def test_what_follows_a_question_gains_from_it() -> None:
    turns = {turn: (0, 0, 0, 5) for turn in range(1, 40)} | {20: (1, 0, 0, 5)}
    assert list(scored(turns)) == [20, 21, 19]


def test_the_newest_gains_where_it_is_asked_for() -> None:
    turns = {turn: (0, 0, 0, 5) for turn in range(1, 41)}
    turns |= {1: (2, 0, 0, 5), 20: (1, 0, 0, 5), 38: (1, 0, 0, 5)}
    assert next(iter(scored(turns))) == 1
    assert next(iter(scored(turns, recency=2.0))) == 38


def test_nothing_is_found_among_nothing() -> None:
    assert score_turns([], Collection(5, 5), before_turn=9, recency=0.1, most=5) == {}
