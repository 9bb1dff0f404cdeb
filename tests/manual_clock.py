"""Clock that a test sets."""


class ManualClock:
    """Both clocks of `services.common.clock.Clock`, which stand still until a test sets them.

    Attributes:
        now_s: the time of both, in Unix seconds.
    """

    def __init__(self, now_s: float = 1_700_000_000.0) -> None:
        self.now_s = now_s

    def now(self) -> float:
        return self.now_s

    def monotonic(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return int(self.now_s * 1000)
