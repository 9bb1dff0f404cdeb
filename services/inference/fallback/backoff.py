"""How long to wait before the same model is asked again. Pure, but for the dice handed in."""

from collections.abc import Callable
from typing import NamedTuple

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0

# Returns a number between two bounds, as `random.uniform` does.
Uniform = Callable[[float, float], float]


class Retries(NamedTuple):
    """How often and how patiently one step is tried again.

    Attributes:
        most: further attempts after the first.
        factor: between one delay and the next, at least 1.
        jitter_s: upper bound of the random addition to a delay.
    """

    most: int = 0
    factor: float = 2.0
    jitter_s: float = 0.0

    def delay(self, retry: int, uniform: Uniform) -> float:
        """Return the seconds before a retry, counted from 0."""
        try:
            grown = FIRST_DELAY_S * self.factor**retry
        except OverflowError:
            return LONGEST_DELAY_S
        return min(grown + uniform(0.0, self.jitter_s), LONGEST_DELAY_S)
