"""Windows: which turns of a transcript go out as they were said, and which are summarised.

Everything follows from three numbers: how many turns there are, how many of them the
summary covers, and how large the windows are. So windows can change from one request to
the next, and nothing is ever summarised twice on account of that.
"""

from dataclasses import dataclass

SMALLEST_WINDOW = 5
DEFAULT_HISTORY_WINDOW = 10
DEFAULT_SUMMARY_WINDOW = 5


@dataclass(frozen=True, slots=True)
class TurnRanges:
    """Where the turns of a transcript stand, by their numbers; each is in exactly one range.

    Attributes:
        summarised: turns that go out in the summary alone; when there are none it need
            not be shown. The summary may tell of the oldest raw turns too, where the
            window has been enlarged since.
        pending: turns outside of the window that no summary covers yet; they go out raw.
        window: the newest turns, which go out raw.
        due: the batch of pending turns to be summarised next; None while they are too few.
    """

    summarised: range
    pending: range
    window: range
    due: range | None

    @property
    def raw(self) -> range:
        """The turns that go out as they were said: pending ones and the window."""
        return range(self.pending.start, self.window.stop)


@dataclass(frozen=True, slots=True)
class Windows:
    """How many turns stay raw, and how many are summarised at a time.

    Attributes:
        history: the newest turns, at least `SMALLEST_WINDOW`.
        summary: turns of a batch, at least `SMALLEST_WINDOW`.
    """

    history: int = DEFAULT_HISTORY_WINDOW
    summary: int = DEFAULT_SUMMARY_WINDOW

    def view(self, turns: int, summarised: int) -> TurnRanges:
        """Return where turns stand.

        Args:
            turns: how many there are, an open one included.
            summarised: number of the last one that the summary covers; 0 without a summary.
        """
        window = range(max(1, turns - self.history + 1), turns + 1)
        pending = range(min(summarised + 1, window.start), window.start)
        due = pending[: self.summary] if len(pending) >= self.summary else None
        return TurnRanges(range(1, pending.start), pending, window, due)
