"""The access log: a line for a request, and under load for some of them.

A line costs more than the rest of the gateway's bookkeeping. Up to a bound every request
of a second has one; beyond it only those that failed at the server have. No request waits
for one: what is to be told is noted, and written a moment later.
"""

import logging
from collections.abc import Callable

from services.common import logs

log = logging.getLogger("facade.access")

_SERVER_ERRORS = 500
# How late a line may be; one of a failure of the server is not late at all.
_DELAY_S = 0.2


class AccessLog:
    """Writes the lines of one process.

    Args:
        lines_per_s: how many requests of a second have one; server errors always do.
        monotonic: seconds of a clock that never goes back.
        later: calls back after so many seconds.
    """

    def __init__(
        self,
        lines_per_s: int,
        monotonic: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._lines_per_s = lines_per_s
        self._monotonic = monotonic
        self._later = later
        self._second = -1
        self._lines = 0
        self._left_out = 0
        self._noted: list[dict[str, object]] = []

    def answered(
        self,
        method: str,
        route: str,
        status: int,
        seconds: float,
        details: Callable[[], dict[str, object]],
    ) -> None:
        """Note a request that was answered, `seconds` after it came.

        What `details` returns stands in its line too; it is called only if there is one. The
        first line after some were left out tells how many, as `left_out`.
        """
        second = int(self._monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
        is_bad = status >= _SERVER_ERRORS
        if self._lines >= self._lines_per_s and not is_bad:
            self._left_out += 1
            return
        self._lines += 1
        told: dict[str, object] = {
            "request_id": logs.request_id.get(),
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            **details(),
        }
        if self._left_out:
            told["left_out"] = self._left_out
            self._left_out = 0
        self._noted.append(told)
        if is_bad:
            self.write()
        elif len(self._noted) == 1:
            self._later(_DELAY_S, self.write)

    def write(self) -> None:
        """Write what is noted; to be called before the process ends, too."""
        noted, self._noted = self._noted, []
        for told in noted:
            log.info("request", extra=told)
