"""What a claim on an allowance is granted.

The one law: what all workers hold of an allowance never exceeds its limit, but for what was used
beyond it by answers that cost more than was foreseen.
"""

from typing import NamedTuple

# What is left where nothing is limited.
UNLIMITED = 1 << 62
# Of what is left, the part that one claim gets ahead of its need. Near exhaustion it is nothing:
# what one worker held in reserve, others would lack.
_AHEAD = 16


class Granted(NamedTuple):
    """What a claim is granted.

    Attributes:
        amount: beside what the claim holds.
        remaining: what no worker holds after that.
    """

    amount: int
    remaining: int


def grant(free: int, amount: int, least: int, ahead: int) -> Granted:
    """Return what a claim is granted.

    Args:
        free: what no worker holds; negative where more was used than the limit.
        amount: what the claim needs.
        least: the smallest part of `amount` that is of use.
        ahead: what it would like beside that.
    """
    free = max(0, free)
    needed = min(amount, free)
    if needed < min(amount, least):
        needed = 0
    left = free - needed
    extra = min(ahead, left // _AHEAD)
    return Granted(needed + extra, left - extra)
