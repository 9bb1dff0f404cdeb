import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.archive.score_fusion import fuse_scores

SCORES = st.dictionaries(st.integers(1, 20), st.floats(0.01, 50))
COSINES = st.dictionaries(st.integers(1, 20), st.floats(-1, 1))


def test_lexical_scores_stay_where_there_are_no_vectors() -> None:
    assert fuse_scores({3: 4.5, 5: 9.0}, {}) == {3: 4.5, 5: 9.0}


def test_both_scores_are_scaled_before_they_are_added() -> None:
    fused = fuse_scores({1: 10.0, 2: 5.0}, {1: 0.3, 2: 0.7, 3: 0.5})
    assert fused == pytest.approx({1: 0.8, 2: 0.4 + 0.2, 3: 0.1})


def test_words_count_more_than_vectors() -> None:
    fused = fuse_scores({1: 10.0, 2: 7.0}, {1: 0.0, 2: 1.0, 3: 1.0})
    assert sorted(fused, key=fused.__getitem__) == [3, 2, 1]


@given(SCORES, COSINES)
def test_every_turn_has_a_score_between_0_and_1(
    lexical: dict[int, float], cosine: dict[int, float]
) -> None:
    fused = fuse_scores(lexical, cosine)
    assert fused.keys() == lexical.keys() | cosine.keys()
    assert not cosine or all(-1e-9 <= score <= 1 + 1e-9 for score in fused.values())
