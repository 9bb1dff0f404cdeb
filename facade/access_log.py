"""The access log: a line per request, sampled under load.

Writing a line is expensive. Up to a limit per second every request is logged, beyond it only server
errors. Lines are buffered and written a moment later.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from services.common.process import logs
from services.common.text.texts import cut, printable

if TYPE_CHECKING:
    from facade.http.exchange import Exchange

log = logging.getLogger("facade.access")

_SERVER_ERRORS = 500
# Seconds until buffered lines are written; server errors are written at once.
_DELAY_S = 0.2
_MAX_PATH = 256  # maximum characters of a logged path
# Masked in logged paths: a misconfigured client may have its key there.
_KEY = re.compile(r"gw(?:admin)?-[A-Za-z0-9_-]+", re.ASCII)


class AccessLog:
    """Writes the access log of one process.

    Args:
        lines_per_s: maximum lines per second, apart from server errors.
        monotonic: monotonic clock in seconds.
        later: schedules a callback after a delay in seconds.
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
        self._buffered: list[dict[str, object]] = []

    def answered(
        self,
        method: str,
        route: str,
        status: int,
        seconds: float,
        details: Callable[[], dict[str, object]],
    ) -> None:
        """Log a request that took `seconds`.

        `details` returns further fields; it is called only for logged requests. The first line
        after skipped ones has their number, as `left_out`.
        """
        second = int(self._monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
        is_bad = status >= _SERVER_ERRORS
        if self._lines >= self._lines_per_s and not is_bad:
            self._left_out += 1
            return
        self._lines += 1
        line: dict[str, object] = {
            "request_id": logs.request_id.get(),
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            **details(),
        }
        if self._left_out:
            line["left_out"] = self._left_out
            self._left_out = 0
        self._buffered.append(line)
        if is_bad:
            self.write()
        elif len(self._buffered) == 1:
            self._later(_DELAY_S, self.write)

    def write(self) -> None:
        """Write the buffered lines; also call this before the process ends."""
        lines, self._buffered = self._buffered, []
        for line in lines:
            log.info("request", extra=line)


def details_of(exchange: Exchange, status: int) -> dict[str, object]:
    """Return the fields of a log line: caller, model, provider, token counts and error code.

    Unknown fields are left out. The path is included only for 404, without its query.
    """
    details: dict[str, object] = {}
    if (trace := exchange.trace) is not None:
        details["trace_id"], details["span_id"] = trace.trace_id, trace.span_id
    if (caller := exchange.caller) is not None:
        details["user"] = caller.user_id
        details["key_id"] = caller.key_id
    if exchange.model is not None:
        details["model"] = exchange.model
    if (summary := exchange.answer_summary) is not None and summary.model:
        details["served_model"] = summary.model
        details["provider"] = summary.provider
        if summary.begun_by is not None:
            details["begun_by_model"], details["begun_by_provider"] = summary.begun_by
        details["input_tokens"] = summary.input_tokens
        details["output_tokens"] = summary.output_tokens
    if exchange.failure is not None:
        details["error"] = exchange.failure
    if status == 404:
        details["path"] = printable(cut(_KEY.sub("gw-…", exchange.path), _MAX_PATH))
    return details
