from hypothesis import given
from hypothesis import strategies as st

from services.memory.archive.postings import keep_before, pack


@given(st.sets(st.integers(1, 40), max_size=12), st.integers(0, 45))
def test_postings_are_cut_off_from_a_turn_on(turns: set[int], first: int) -> None:
    whole = {turn: pack(turn, 1, 5) for turn in turns}
    kept = b"".join(posting for turn, posting in whole.items() if turn < first)
    assert keep_before(b"".join(whole.values()), first) == kept


def test_numbers_beyond_what_is_kept_count_as_the_most() -> None:
    assert pack(1, 10**9, 10**9) == pack(1, 0xFFFF, 0xFFFF)
