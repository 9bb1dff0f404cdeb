"""Clock that is handed in, so that a test decides the time."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """Wall clock and monotonic clock.

    Attributes:
        now: Unix seconds.
        monotonic: seconds of a clock that never goes back.
    """

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic

    def now_ms(self) -> int:
        """Return the time in Unix milliseconds."""
        return int(self.now() * 1000)
