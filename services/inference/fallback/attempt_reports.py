"""Where the outcomes of attempts are reported to operators: counts, warnings and spans.

`RecentAttempts` counts the attempts of the last minutes by model. `FailureLog` writes warnings on
failed calls of providers; a provider that is down fails every request, so the lines are limited to
a few per second and provider, and the next line has the number of those left out. `AttemptSpans`
records spans for an OpenTelemetry collector.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gateway.errors.v1.errors_pb2 import Attempt, Reason
from gateway.inference.v1.providers_pb2 import AttemptCounts
from services.common.errors import GatewayError, UpstreamError
from services.common.process.telemetry.spans import Span, Telemetry
from services.common.process.telemetry.trace_context import TraceContext, attempt_trace
from services.inference.circuit_breaker import ModelKey
from services.inference.plans.plan import Step

log = logging.getLogger(__name__)

# The window of the counts, and the interval in which it advances.
WINDOW_S = 300
_STEP_S = 30
# Retention of a model's latest failure.
FAILURE_KNOWN_S = 3_600.0
# Maximum number of models: callers can name as many as they like.
_MOST = 500
# Maximum number of warnings per second on one provider.
_LINES_PER_S = 5


def reason_name(reason: Reason.ValueType) -> str:
    """Return the name of a reason in logs and traces, such as `upstream_timeout`."""
    return Reason.Name(reason).removeprefix("REASON_").lower()


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt.

    Attributes:
        at: when it failed, by the process's monotonic clock.
        reason: the reason of the error.
        status: the provider's HTTP status, or None.
    """

    at: float
    reason: Reason.ValueType
    status: int | None


class _Counts:
    """Counts of the attempts that ended in one interval; fields as in `AttemptCounts`."""

    __slots__ = (
        *("cancelled", "failed", "first_content_ms", "first_contents", "number"),
        *("served", "served_ms"),
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.served = self.failed = self.cancelled = 0
        self.first_contents = self.first_content_ms = self.served_ms = 0


class _Model:
    __slots__ = ("failure", "steps")

    def __init__(self) -> None:
        self.steps: deque[_Counts] = deque(maxlen=WINDOW_S // _STEP_S)
        self.failure: Failure | None = None


class RecentAttempts:
    """Counts the recent attempts of one process.

    Args:
        monotonic: monotonic clock, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._models: OrderedDict[ModelKey, _Model] = OrderedDict()

    def served(self, key: ModelKey, at: float, duration_ms: int, first_ms: int | None) -> None:
        """Count an attempt whose answer was completed."""
        counts = self._counts(key, at)
        counts.served += 1
        counts.served_ms += duration_ms
        if first_ms is not None:
            counts.first_contents += 1
            counts.first_content_ms += first_ms

    def failed(self, key: ModelKey, failure: Failure) -> None:
        """Count a failed attempt."""
        self._counts(key, failure.at).failed += 1
        self._models[key].failure = failure

    def cancelled(self, key: ModelKey, at: float) -> None:
        """Count a cancelled attempt."""
        self._counts(key, at).cancelled += 1

    def counts(self) -> Iterator[tuple[ModelKey, AttemptCounts, Failure | None]]:
        """Yield for each model its counts in the window, and its latest failure of the last hour.

        Models with neither are removed.
        """
        now = self._monotonic()
        oldest = now // _STEP_S - WINDOW_S // _STEP_S
        for key, model in list(self._models.items()):
            if model.failure is not None and now - model.failure.at > FAILURE_KNOWN_S:
                model.failure = None
            while model.steps and model.steps[0].number <= oldest:
                model.steps.popleft()
            if model.steps or model.failure is not None:
                yield key, _sum(model.steps), model.failure
            else:
                del self._models[key]

    def _counts(self, key: ModelKey, at: float) -> _Counts:
        """Return the counts of a model for the interval in which an attempt ended."""
        model = self._models.get(key)
        if model is None:
            if len(self._models) >= _MOST:
                self._models.popitem(last=False)
            model = self._models[key] = _Model()
        number = int(at // _STEP_S)
        if not model.steps or model.steps[-1].number != number:
            model.steps.append(_Counts(number))
        return model.steps[-1]


def _sum(steps: deque[_Counts]) -> AttemptCounts:
    total = AttemptCounts()
    for counts in steps:
        total.served += counts.served
        total.failed += counts.failed
        total.cancelled += counts.cancelled
        total.first_contents += counts.first_contents
        total.first_content_ms += counts.first_content_ms
        total.served_ms += counts.served_ms
    return total


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
