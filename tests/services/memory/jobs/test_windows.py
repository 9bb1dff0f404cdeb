"""Windows: every turn is in exactly one place, and batches come due in order."""

from hypothesis import given
from hypothesis import strategies as st

from services.memory.jobs.windows import TurnRanges, Windows

WINDOWS = st.builds(Windows, st.integers(5, 40), st.integers(5, 20))


def numbers(first: int, last: int) -> range:
    return range(first, last + 1)


def test_a_short_conversation_goes_out_raw() -> None:
    view = Windows().view(turns=10, summarised=0)
    assert (list(view.raw), list(view.summarised), view.due) == (list(numbers(1, 10)), [], None)


def test_without_turns_there_is_nothing() -> None:
    view = Windows().view(turns=0, summarised=0)
    assert (len(view.raw), len(view.summarised), view.due) == (0, 0, None)


def test_turns_outside_the_window_stay_raw_until_summarised() -> None:
    view = Windows(10, 5).view(turns=14, summarised=0)
    assert view == TurnRanges(range(1, 1), numbers(1, 4), numbers(5, 14), None)
    assert view.raw == numbers(1, 14)


def test_a_batch_is_due_once_there_are_turns_enough() -> None:
    assert Windows(10, 5).view(turns=15, summarised=0).due == numbers(1, 5)
    assert Windows(10, 5).view(turns=15, summarised=5).due is None
    assert Windows(10, 5).view(turns=19, summarised=5).due is None
    assert Windows(10, 5).view(turns=20, summarised=5).due == numbers(6, 10)


def test_of_many_pending_turns_the_oldest_are_due() -> None:
    assert Windows(5, 7).view(turns=100, summarised=14).due == numbers(15, 21)


def test_larger_window_shows_summarised_turns_raw_again() -> None:
    view = Windows(20, 5).view(turns=25, summarised=15)
    assert view == TurnRanges(numbers(1, 5), range(6, 6), numbers(6, 25), None)


def test_window_over_all_turns_needs_no_summary() -> None:
    view = Windows(30, 5).view(turns=25, summarised=15)
    assert (list(view.summarised), view.raw) == ([], numbers(1, 25))


def test_a_smaller_window_makes_the_turns_it_leaves_pending() -> None:
    view = Windows(5, 5).view(turns=25, summarised=15)
    assert view == TurnRanges(numbers(1, 15), numbers(16, 20), numbers(21, 25), numbers(16, 20))


@given(WINDOWS, st.data())
def test_ranges_partition_the_turns(windows: Windows, data: st.DataObject) -> None:
    turns = data.draw(st.integers(0, 120))
    summarised = data.draw(st.integers(0, turns))
    view = windows.view(turns, summarised)
    everywhere = [*view.summarised, *view.pending, *view.window]
    assert everywhere == list(numbers(1, turns))
    assert list(view.raw) == [*view.pending, *view.window]
    assert len(view.window) == min(windows.history, turns)
    assert all(turn <= summarised for turn in view.summarised)
    assert all(turn > summarised for turn in view.pending)
    assert (view.due is not None) == (len(view.pending) >= windows.summary)
    if view.due is not None:
        assert view.due == numbers(summarised + 1, summarised + windows.summary)


@given(st.lists(WINDOWS, min_size=1, max_size=60))
def test_changing_windows_summarise_each_turn_once(requests: list[Windows]) -> None:
    batches: list[int] = []
    for turns, windows in enumerate(requests):
        while due := windows.view(turns, len(batches)).due:
            assert len(due) == windows.summary
            batches += due
        view = windows.view(turns, len(batches))
        assert batches == list(numbers(1, len(batches)))
        assert len(view.raw) < windows.history + windows.summary
