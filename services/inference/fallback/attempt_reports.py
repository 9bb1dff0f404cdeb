"""How attempts are reported to operators beside metrics: by warnings and by spans.

`FailureLog` writes warnings on failed calls of providers; a provider that is down fails every
request, so the lines are limited to a few per second and provider, and the next line has the number
of those left out. `AttemptSpans` records spans for an OpenTelemetry collector.
"""

import logging
from collections.abc import Callable, Mapping

from gateway.errors.v1.errors_pb2 import Attempt, Reason
from services.common.errors import GatewayError, UpstreamError
from services.common.process.telemetry.spans import Span, Telemetry
from services.common.process.telemetry.trace_context import TraceContext, attempt_trace
from services.inference.plans.plan import Step

log = logging.getLogger(__name__)

# Maximum number of warnings per second on one provider.
_LINES_PER_S = 5


def reason_name(reason: Reason.ValueType) -> str:
    """Return the name of a reason in logs and traces, such as `upstream_timeout`."""
    return Reason.Name(reason).removeprefix("REASON_").lower()


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
            "reason": reason_name(error.reason),
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


class AttemptSpans:
    """Records a span for each attempt, and its duration as a metric."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def begin(self, step: Step, parent: TraceContext | None) -> Span:
        """Begin the span of an attempt at a step's model, in the trace of `parent`.

        The current task's request to the provider carries the span's trace context.
        """
        names = {**_names(step), "gateway.step": step.step_id}
        span = self._telemetry.begin(f"chat {step.key.model}", "client", parent, names)
        attempt_trace.set(span.context)
        return span

    def end(self, span: Span, step: Step, outcome: str, attempt: Attempt, seconds: float) -> None:
        """End the span of an attempt."""
        error = "" if outcome == "served" else reason_name(attempt.reason)
        details: dict[str, str | int] = {"gateway.outcome": outcome}
        if attempt.status:
            details["http.response.status_code"] = attempt.status
        span.end(details, error)
        names = _names(step)
        if error:
            names["error.type"] = error
        self._telemetry.record("gen_ai.client.operation.duration", seconds, names)


def _names(step: Step) -> dict[str, str]:
    """Return the attributes of a step's operation, provider and model."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": step.key.provider,
        "gen_ai.request.model": step.key.model,
    }
