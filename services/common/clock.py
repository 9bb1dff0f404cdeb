"""Clock that is passed as an argument, so that tests control the time."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

# A wall clock that moves by more than this against the monotonic clock has been set.
_JUMP_MS = 1_000

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Clock:
    """Wall clock and monotonic clock.

    Attributes:
        now: returns Unix seconds.
        monotonic: returns the seconds of a monotonic clock.
    """

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic

    def now_ms(self) -> int:
        """Return the time in Unix milliseconds."""
        return int(self.now() * 1000)


class ExpiryClock:
    """Judges whether rows and files that other processes write have expired.

    When the wall clock has been set, times written before and after differ by the jump. For
    `settle_s`, in which whoever is alive writes its times again, only what has expired by both
    times has expired.

    Args:
        clock: the clock.
        settle_s: seconds within which living processes renew what they hold.
    """

    def __init__(self, clock: Clock, settle_s: float) -> None:
        self._clock = clock
        self._settle_s = settle_s
        # Wall clock minus monotonic clock, in milliseconds: now, and before the last jump.
        self._offset_ms = self._before_ms = self._read_offset_ms(clock.monotonic())
        self._settles_at = clock.monotonic()

    def bounds_ms(self) -> tuple[int, int]:
        """Return the earliest and the latest time that it may be, in Unix milliseconds."""
        monotonic = self._clock.monotonic()
        offset_ms = self._read_offset_ms(monotonic)
        jump_ms = offset_ms - self._offset_ms
        self._offset_ms = offset_ms
        if abs(jump_ms) > _JUMP_MS:
            # A second jump while the first settles leaves the earlier bound as it is.
            if monotonic >= self._settles_at:
                self._before_ms = offset_ms - jump_ms
            self._settles_at = monotonic + self._settle_s
            log.warning("the wall clock was set", extra={"by_s": round(jump_ms / 1000)})
        if monotonic >= self._settles_at:
            self._before_ms = offset_ms
        now_ms = int(monotonic * 1000)
        return (
            now_ms + min(offset_ms, self._before_ms),
            now_ms + max(offset_ms, self._before_ms),
        )

    def _read_offset_ms(self, monotonic: float) -> int:
        return self._clock.now_ms() - int(monotonic * 1000)
