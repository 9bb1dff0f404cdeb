from services.memory.archive.ranking import TurnTime, rank_with_sessions, reciprocal_rank_fusion


def test_the_first_of_all_lists_has_the_whole_score() -> None:
    assert reciprocal_rank_fusion([[5, 3], [5, 9]])[5] == 1.0
    assert reciprocal_rank_fusion([[5, 3]])[5] == 1.0
    assert reciprocal_rank_fusion([]) == {}


def test_turn_in_both_rankings_beats_first_of_one() -> None:
    scores = reciprocal_rank_fusion([[1, 2], [3, 2]])
    assert max(scores, key=scores.__getitem__) == 2


def test_others_of_its_session_lift_a_turn() -> None:
    alone, together = TurnTime(0, 20), TurnTime(0, 10)
    order = rank_with_sessions({20: 0.5, 10: 0.5, 11: 0.4}, {20: alone, 10: together, 11: together})
    assert [turn for turn, _ in order] == [10, 20, 11]
    # Its own score does not lift it, and the later of equals comes first.
    assert rank_with_sessions({1: 0.5, 2: 0.5}, {1: TurnTime(0, 1), 2: TurnTime(0, 2)}) == [
        (2, 0.5),
        (1, 0.5),
    ]


def test_a_turn_that_is_not_archived_is_left_out() -> None:
    assert rank_with_sessions({1: 0.5, 2: 0.7}, {1: TurnTime(0, 1)}) == [(1, 0.5)]
