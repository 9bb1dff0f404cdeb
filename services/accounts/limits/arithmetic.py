"""The amount that a claim on an allowance is granted.

Invariant: the leases of all workers on an allowance never exceed its limit together, except by the
usage of answers that cost more than estimated.
"""

from typing import NamedTuple

# The remaining amount without a limit.
UNLIMITED = 1 << 62
# Divisor: at most this part of the remaining amount is granted to one claim in advance. Near
# exhaustion that is nothing, so that other workers do not lack the reserve of one.
_AHEAD = 16


class Granted(NamedTuple):
    """The grant of a claim.

    Attributes:
        amount: amount granted in addition to the held one.
        remaining: amount that no worker holds afterwards.
    """

    amount: int
    remaining: int


def grant(free: int, amount: int, least: int, ahead: int) -> Granted:
    """Return the grant of a claim.

    Args:
        free: amount that no worker holds; negative if the usage exceeds the limit.
        amount: amount that the claim needs.
        least: the smallest useful part of `amount`; less is not granted.
        ahead: further amount requested in advance.
    """
    free = max(0, free)
    needed = min(amount, free)
    if needed < min(amount, least):
        needed = 0
    left = free - needed
    extra = min(ahead, left // _AHEAD)
    return Granted(needed + extra, left - extra)
