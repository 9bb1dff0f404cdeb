"""The amount that a claim on an allowance is granted.

Invariant: the leases of all workers on an allowance never exceed its limit together, except by one
reservation (`overdraws`), and by the usage of answers beyond what was reserved for them.
"""

from typing import NamedTuple

# The remaining amount without a limit.
UNLIMITED = 1 << 62
# Divisor: at most this part of the remaining amount is granted to one claim in advance. Near
# exhaustion that is nothing, so that other workers do not lack the reserve of one.
_PREFETCH_DIVISOR = 16


class Granted(NamedTuple):
    """The grant of a claim.

    Attributes:
        amount: amount granted in addition to the held one.
        remaining: amount that no worker holds afterwards; negative if the workers hold more than
            the limit.
    """

    amount: int
    remaining: int


def grant(
    free: int, amount: int, min_amount: int, prefetch_amount: int, *, overdraws: bool = False
) -> Granted:
    """Return the grant of a claim.

    Args:
        free: amount that no worker holds; negative if the usage exceeds the limit.
        amount: amount that the claim needs.
        min_amount: the smallest useful part of `amount`; less is not granted.
        prefetch_amount: amount requested in advance, in addition to `amount`.
        overdraws: whether `min_amount` is granted if anything is free. The amounts are reservations
            then: what is free would otherwise never be used by requests that may cost more.
    """
    needed = min(amount, max(0, free))
    if needed < min(amount, min_amount):
        needed = min(amount, min_amount) if overdraws and free > 0 else 0
    unused = free - needed
    extra = min(prefetch_amount, max(0, unused) // _PREFETCH_DIVISOR)
    return Granted(needed + extra, unused - extra)
