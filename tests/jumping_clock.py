"""Clock whose wall time a test sets, while its monotonic time goes on."""

import time


class JumpingClock:
    """Both clocks of `services.common.clock.Clock`: the machine's, with a wall clock that is set.

    Attributes:
        ahead_s: seconds by which the wall clock is ahead of the machine's.
    """

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> float:
        return time.time() + self.ahead_s

    def monotonic(self) -> float:
        return time.monotonic()

    def now_ms(self) -> int:
        return int(self.now() * 1000)
