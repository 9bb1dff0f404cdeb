"""How much each user has had lately of something that all users share, as of a thread's time."""

import time
from collections.abc import Callable

_PERIOD_S = 5.0


class RecentUse:
    """The seconds that each owner has used in the current period and in the one before.

    Args:
        monotonic: returns the seconds since any moment.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ends_at = monotonic() + _PERIOD_S
        self._current: dict[str, float] = {}
        self._before: dict[str, float] = {}

    def add(self, owner: str, seconds: float) -> None:
        """Add to what an owner has used."""
        self._roll()
        self._current[owner] = self._current.get(owner, 0.0) + seconds

    def of(self, owner: str) -> float:
        """Return what an owner has used lately, in seconds."""
        self._roll()
        return self._current.get(owner, 0.0) + self._before.get(owner, 0.0)

    def _roll(self) -> None:
        now = self._monotonic()
        if now < self._ends_at:
            return
        is_next = now < self._ends_at + _PERIOD_S
        self._before = self._current if is_next else {}
        self._current = {}
        self._ends_at = now + _PERIOD_S
