"""Lines in the log about calls of providers that failed, for whoever can mend it.

A provider that is down fails every request. A few lines of a second tell all there is to
know of it; how many were left out stands in the next one.
"""

import logging
from collections.abc import Callable, Mapping

from gateway.errors.v1.errors_pb2 import Reason
from services.common.errors import GatewayError, UpstreamError

log = logging.getLogger(__name__)

_LINES_PER_S = 5  # of one provider


class FailureLog:
    """Writes the lines of one process.

    Args:
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._of_provider: dict[str, _Lines] = {}

    def write(self, provider: str, error: GatewayError, fields: Mapping[str, object]) -> None:
        """Write the line of a failure, unless its provider has had enough of them.

        The line holds what the caller is told (`error`) and, as `cause`, what the system or the
        provider itself said.
        """
        lines = self._of_provider.get(provider)
        if lines is None:
            lines = self._of_provider[provider] = _Lines()
        left_out = lines.take(int(self._monotonic()))
        if left_out is None:
            return
        extra: dict[str, object] = {
            "provider": provider,
            **fields,
            "reason": Reason.Name(error.reason).removeprefix("REASON_").lower(),
            "error": error.message,
        }
        if isinstance(error, UpstreamError):
            extra["status"] = error.status
            if cause := error.cause():
                extra["cause"] = cause
        if left_out:
            extra["left_out"] = left_out
        log.warning("a provider failed", extra=extra)


class _Lines:
    """How many lines a provider has had in this second."""

    def __init__(self) -> None:
        self._second = -1
        self._written = 0
        self._left_out = 0

    def take(self, second: int) -> int | None:
        """Return how many were left out before the next line, or None if it is left out too."""
        if second != self._second:
            self._second, self._written = second, 0
        if self._written >= _LINES_PER_S:
            self._left_out += 1
            return None
        self._written += 1
        left_out, self._left_out = self._left_out, 0
        return left_out
