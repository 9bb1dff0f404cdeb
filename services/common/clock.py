"""Clock that is passed as an argument, so that tests control the time."""

import time
from collections.abc import Callable
from dataclasses import dataclass


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
