import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from services.memory.archive.postings import Collection, keep_before, pack, rank_bm25, select_rarest

# How often each of three terms comes up in a turn, and how many other terms it has.
Turns = dict[int, tuple[int, int, int, int]]
COUNTS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 30))
TURNS = st.dictionaries(st.integers(1, 40), COUNTS, min_size=1, max_size=12)


def found(turns: Turns) -> list[list[bytes]]:
    return [
        [pack(turn, counts[term], sum(counts)) for turn, counts in turns.items() if counts[term]]
        for term in range(3)
    ]


def ranked(
    turns: Turns, before_turn: int = 99, neighbour_share: float = 0.0, **more: float
) -> list[int]:
    collection = Collection(len(turns), sum(map(sum, turns.values())))
    return rank_bm25(
        found(turns),
        collection,
        before_turn=before_turn,
        neighbour_share=neighbour_share,
        recency=more.get("recency", 0.0),
        most=int(more.get("most", 99)),
    )


def by_the_book(turns: Turns, neighbour_share: float) -> dict[int, float]:
    """BM25 as one writes it for one turn at a time."""
    mean = sum(map(sum, turns.values())) / len(turns)
    own = dict.fromkeys(range(50), 0.0)
    for turn, counts in turns.items():
        for term in range(3):
            having = sum(1 for other in turns.values() if other[term])
            rarity = math.log(1 + (len(turns) - having + 0.5) / (having + 0.5))
            if counts[term]:
                spread = 1.2 * (0.6 + 0.4 * sum(counts) / mean)
                own[turn] += rarity * counts[term] / (counts[term] + spread)
    around = {turn: max(own.get(turn - 1, 0.0), own.get(turn + 1, 0.0)) for turn in own}
    return {turn: own[turn] + neighbour_share * around[turn] for turn in own}


@given(TURNS, st.sampled_from([0.0, 0.4]))
def test_turns_come_in_the_order_of_bm25(turns: Turns, neighbour_share: float) -> None:
    scores = by_the_book(turns, neighbour_share)
    order = ranked(turns, neighbour_share=neighbour_share)
    assert set(order) == {turn for turn, score in scores.items() if score}
    for one, next_one in pairwise(order):
        assert scores[one] > scores[next_one] - 1e-9


@given(TURNS, st.integers(0, 45), st.integers(1, 5))
def test_what_goes_out_raw_stays_out_and_the_best_others_stay(
    turns: Turns, before_turn: int, most: int
) -> None:
    whole = [turn for turn in ranked(turns, neighbour_share=0.4) if turn < before_turn]
    assert ranked(turns, before_turn, 0.4, most=most) == whole[:most]


def test_of_equals_the_later_comes_first() -> None:
    turns = dict.fromkeys(range(1, 30), (1, 0, 0, 5))
    assert ranked(turns, most=3) == [29, 28, 27]


def test_the_newest_gains_without_passing_what_fits_better() -> None:
    turns = {1: (2, 0, 0, 5), 9: (1, 0, 0, 5), 40: (1, 0, 0, 5)}
    assert ranked(turns, recency=0.1) == [1, 40, 9]
    assert ranked(turns, recency=5.0) == [40, 9, 1]
    assert ranked({**turns, 40: (1, 0, 0, 7)}) == [1, 9, 40]
    assert ranked({**turns, 40: (1, 0, 0, 6)}, recency=0.5) == [40, 1, 9]


def test_nothing_is_found_among_nothing() -> None:
    assert (
        rank_bm25([], Collection(5, 5), before_turn=9, neighbour_share=0.4, recency=0.1, most=5)
        == []
    )


@given(TURNS, st.integers(0, 45))
def test_postings_are_cut_off_from_a_turn_on(turns: Turns, first: int) -> None:
    whole = {turn: pack(turn, 1, 5) for turn in turns}
    kept = b"".join(posting for turn, posting in whole.items() if turn < first)
    assert keep_before(b"".join(whole.values()), first) == kept


def test_numbers_beyond_what_is_kept_count_as_the_most() -> None:
    assert pack(1, 10**9, 10**9) == pack(1, 0xFFFF, 0xFFFF)


def test_rarest_terms_are_selected_within_a_limit() -> None:
    counted = {0: 50, 1: 3, 2: 40, 4: 9}
    assert select_rarest(counted, 60) == [1, 4, 2]
    assert select_rarest(counted, 2) == [1]
    assert select_rarest({}, 60) == []
