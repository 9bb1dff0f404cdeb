"""How a budget will be used up at the present pace. Pure."""

from typing import NamedTuple

from services.common.limit_windows import DAY_MS, Window

# A shorter time says little about the pace.
_MIN_ELAPSED_MS = 3_600_000
_MAX_AHEAD_MS = 3_660 * DAY_MS


class Forecast(NamedTuple):
    """The use of a budget at the present pace.

    Attributes:
        at_end: what will have been used at the end of the window; None if it is not known, or there
            is no end.
        exhausted_at_ms: when the budget will be used up, in Unix milliseconds; None if that is not
            known, not in the window, in more than ten years, or past.
    """

    at_end: int | None = None
    exhausted_at_ms: int | None = None


def forecast(limit: int, used: int, window: Window, since_ms: int, now_ms: int) -> Forecast:
    """Return the forecast of a budget.

    Args:
        limit: the budget.
        used: what has been used since `since_ms`.
        window: the window.
        since_ms: the start of the window, or the last reset in it.
        now_ms: the time.
    """
    elapsed_ms = now_ms - since_ms
    if elapsed_ms < _MIN_ELAPSED_MS:
        return Forecast()
    at_end = used + used * (window.end_ms - now_ms) // elapsed_ms if window.has_end else None
    if not 0 < used < limit:
        return Forecast(at_end)
    exhausted_at_ms = now_ms + (limit - used) * elapsed_ms // used
    is_ahead = exhausted_at_ms < min(window.end_ms, now_ms + _MAX_AHEAD_MS)
    return Forecast(at_end, exhausted_at_ms if is_ahead else None)
