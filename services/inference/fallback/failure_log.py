"""The failure log: warnings for the operator about failed calls of providers.

A provider that is down fails every request. The lines are therefore limited to a few per second
and provider; the next line has the number of those left out.
"""

import logging
from collections.abc import Callable, Mapping

from gateway.errors.v1.errors_pb2 import Reason
from services.common.errors import GatewayError, UpstreamError

log = logging.getLogger(__name__)

_LINES_PER_S = 5  # of one provider


class FailureLog:
    """Writes the failure log of one process.

    Args:
        monotonic: monotonic clock, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._of_provider: dict[str, _Lines] = {}

    def write(self, provider: str, error: GatewayError, fields: Mapping[str, object]) -> None:
        """Log a failure, unless the provider has reached its number of lines in this second.

        The line has the caller's error message (`error`) and, as `cause`, the message of the
        operating system or of the provider.
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
    """The number of lines of a provider in the current second."""

    def __init__(self) -> None:
        self._second = -1
        self._written = 0
        self._left_out = 0

    def take(self, second: int) -> int | None:
        """Return the number of lines left out since the last one, or None to leave out this one."""
        if second != self._second:
            self._second, self._written = second, 0
        if self._written >= _LINES_PER_S:
            self._left_out += 1
            return None
        self._written += 1
        left_out, self._left_out = self._left_out, 0
        return left_out
