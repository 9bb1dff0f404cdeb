"""Spans of attempts, for an OpenTelemetry collector."""

from gateway.errors.v1.errors_pb2 import Attempt, Reason
from services.common.telemetry.spans import Span, Telemetry
from services.common.telemetry.trace_context import TraceContext, attempt_trace
from services.inference.plans.plan import Step


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


def reason_name(reason: Reason.ValueType) -> str:
    """Return the name of a reason in logs and traces, such as `upstream_timeout`."""
    return Reason.Name(reason).removeprefix("REASON_").lower()


def _names(step: Step) -> dict[str, str]:
    """Return the attributes of a step's operation, provider and model."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": step.key.provider,
        "gen_ai.request.model": step.key.model,
    }
