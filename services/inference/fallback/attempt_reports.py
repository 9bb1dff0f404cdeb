"""How attempts are reported to operators beside metrics: by warnings and by spans.

`FailureLog` writes warnings on failed calls of providers; a provider that is down fails every
request, so the lines are limited to a few per second and provider, and the next line has the number
of those left out. `AttemptSpans` records spans for an OpenTelemetry collector.
"""

import logging
from collections.abc import Callable, Mapping

from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.errors.v1.errors_pb2 import Attempt, Reason
from services.common.errors import GatewayError, UpstreamError
from services.common.messages.passthrough_answer import TokenCounts
from services.common.process.telemetry.conventions import (
    Operation,
    provider_name,
    usage_attributes,
)
from services.common.process.telemetry.spans import Measure, Span, Telemetry, Value
from services.common.process.telemetry.trace_context import TraceContext, attempt_trace
from services.inference.answer_facts import AnswerFacts
from services.inference.plans.plan import Step

log = logging.getLogger(__name__)

# The metrics of the durations of operations.
_DURATIONS: Mapping[Operation, Measure] = {
    "chat": "gen_ai.client.inference.duration",
    "embeddings": "gen_ai.client.embeddings.duration",
    "generate_content": "gen_ai.client.inference.duration",
    "moderation": "gen_ai.client.inference.duration",
    "rerank": "gen_ai.client.inference.duration",
}

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


class AttemptSpan:
    """The span of one attempt, whose duration is a metric too."""

    __slots__ = ("_duration", "_names", "_span", "_telemetry")

    def __init__(
        self,
        telemetry: Telemetry,
        span: Span,
        names: Mapping[str, str | int],
        duration: Measure,
    ) -> None:
        self._telemetry = telemetry
        self._span = span
        self._names = names
        self._duration = duration

    def end(
        self,
        outcome: str,
        attempt: Attempt,
        seconds: float,
        usage: Usage | TokenCounts | None,
        facts: AnswerFacts | None,
    ) -> None:
        """End the span; `usage` is the latest usage that the provider has reported."""
        error = "" if outcome == "served" else reason_name(attempt.reason)
        details: dict[str, Value] = {"gateway.outcome": outcome}
        if facts is not None:
            details |= facts.attributes()
        if attempt.status:
            details["http.response.status_code"] = attempt.status
        if usage is not None:
            details |= usage_attributes(usage)
        self._span.end(details, error)
        names = {**self._names, "error.type": error} if error else self._names
        self._telemetry.record(self._duration, seconds, names)


class AttemptSpans:
    """Records a span for each attempt, and its duration as a metric.

    Args:
        telemetry: records them.
        server_of: returns the attributes of a provider's server.
    """

    def __init__(
        self, telemetry: Telemetry, server_of: Callable[[str], Mapping[str, str | int]]
    ) -> None:
        self._telemetry = telemetry
        self._server_of = server_of

    def begin(
        self, step: Step, parent: TraceContext | None, operation: Operation = "chat"
    ) -> AttemptSpan:
        """Begin the span of an attempt at a step's model, in the trace of `parent`.

        The current task's request to the provider carries the span's trace context.
        """
        provider, model = step.key
        names: dict[str, str | int] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": provider_name(provider),
            "gen_ai.request.model": model,
            **self._server_of(provider),
        }
        of_gateway: dict[str, str | int] = {
            "gateway.step": step.step_id,
            "gateway.provider": provider,
        }
        span = self._telemetry.begin(f"{operation} {model}", "client", parent, names | of_gateway)
        attempt_trace.set(span.context)
        return AttemptSpan(self._telemetry, span, names, _DURATIONS[operation])
