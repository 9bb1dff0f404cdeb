"""The access log: a line for a request, and under load for some of them.

A line costs more than the rest of the gateway's bookkeeping. Up to a bound every request
of a second has one; beyond it only those that failed at the server have.
"""

import logging
from collections.abc import Callable

log = logging.getLogger("facade.access")

_SERVER_ERRORS = 500


class AccessLog:
    """Writes the lines of one process.

    Args:
        lines_per_s: how many requests of a second have one; server errors always do.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(self, lines_per_s: int, monotonic: Callable[[], float]) -> None:
        self._lines_per_s = lines_per_s
        self._monotonic = monotonic
        self._second = -1
        self._lines = 0
        self._left_out = 0

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note a request that was answered, `seconds` after it came.

        The first line after some were left out tells how many, as `left_out`.
        """
        second = int(self._monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
        if self._lines >= self._lines_per_s and status < _SERVER_ERRORS:
            self._left_out += 1
            return
        self._lines += 1
        told: dict[str, object] = {
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
        }
        if self._left_out:
            told["left_out"] = self._left_out
            self._left_out = 0
        log.info("request", extra=told)
