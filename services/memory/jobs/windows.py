"""Windows: which turns of a transcript are shown verbatim, and which are summarised. Pure.

The result depends on three numbers alone: the count of turns, how many of them the summary covers,
and the size of the windows. So windows can change from one request to the next without any turn
being summarised twice.
"""

from dataclasses import dataclass

SMALLEST_WINDOW = 5
DEFAULT_HISTORY_WINDOW = 10
DEFAULT_SUMMARY_WINDOW = 5


@dataclass(frozen=True, slots=True)
class TurnRanges:
    """Ranges of turn numbers; each turn of the transcript is in exactly one of the first three.

    Attributes:
        summarised: turns that only the summary covers; without any, the summary is not shown. The
            summary may also cover the oldest raw turns, if the window was enlarged since.
        pending: turns outside of the window that no summary covers yet; shown raw.
        window: the newest turns, shown raw.
        due: the batch of pending turns to summarise next; None while they are too few.
    """

    summarised: range
    pending: range
    window: range
    due: range | None

    @property
    def raw(self) -> range:
        """The turns that are shown verbatim: pending ones and the window."""
        return range(self.pending.start, self.window.stop)


@dataclass(frozen=True, slots=True)
class Windows:
    """The sizes of the windows.

    Attributes:
        history: number of the newest turns that are shown raw, at least `SMALLEST_WINDOW`.
        summary: number of turns that are summarised at a time, at least `SMALLEST_WINDOW`.
    """

    history: int = DEFAULT_HISTORY_WINDOW
    summary: int = DEFAULT_SUMMARY_WINDOW

    def view(self, turns: int, summarised: int) -> TurnRanges:
        """Return the ranges of a transcript.

        Args:
            turns: count of turns, an open one included.
            summarised: number of the last turn that the summary covers; 0 without a summary.
        """
        window = range(max(1, turns - self.history + 1), turns + 1)
        pending = range(min(summarised + 1, window.start), window.start)
        due = pending[: self.summary] if len(pending) >= self.summary else None
        return TurnRanges(range(1, pending.start), pending, window, due)

    def first_needed(self, turns: int, summarised: int) -> int:
        """Return the first turn that a request may need, which may change the last turn or add one.

        The arguments are those of `view`.
        """
        return min(self.view(max(turns - 1, 0), summarised).raw.start, turns)
