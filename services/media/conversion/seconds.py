"""Budget of conversion time of each owner. Pure.

A budget is refilled continuously within an hour. It is counted per process, and a conversion starts
while anything is left, so that one conversion may overdraw it.
"""

import math
from collections import OrderedDict

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

LIMIT = "limits.conversion_seconds_per_user"
# Owners whose use is remembered; the one that has not converted for the longest is forgotten.
MAX_OWNERS = 10_000
_HOUR_S = 3_600.0


class ConversionSeconds:
    """The conversion time that owners have used.

    Args:
        most: seconds of an owner in an hour.
    """

    def __init__(self, max_s: float) -> None:
        self._most = max_s
        # Seconds that are not yet refilled, and when they were counted.
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, owner: str, now_s: float) -> None:
        """Check that an owner has time left.

        Raises:
            GatewayError: rate_limited.
        """
        excess = self._used_at(owner, now_s) - self._most
        if excess < 0:
            return
        raise GatewayError(
            errors_pb2.REASON_RATE_LIMITED,
            f"the limit of {self._most:g} s of conversions an hour is reached; try again later, or "
            "send media that the model reads itself",
            # At least a second's worth, so that the next conversion is not refused again.
            retry_after_s=math.ceil((excess + 1) * _HOUR_S / self._most),
            limit=LIMIT,
        )

    def add(self, owner: str, seconds: float, now_s: float) -> None:
        """Count the seconds of a conversion that ends now."""
        self._used[owner] = (self._used_at(owner, now_s) + seconds, now_s)
        self._used.move_to_end(owner)
        if len(self._used) > MAX_OWNERS:
            self._used.popitem(last=False)

    def _used_at(self, owner: str, now_s: float) -> float:
        used, counted_s = self._used.get(owner, (0.0, now_s))
        return max(0.0, used - (now_s - counted_s) * self._most / _HOUR_S)
