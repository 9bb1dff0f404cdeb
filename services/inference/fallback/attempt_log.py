"""The attempt log: reports the outcome of each attempt to breakers, loads, metrics and errors."""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt, Reason
from gateway.inference.v1.providers_pb2 import AttemptCounts
from services.common.errors import GatewayError, UpstreamError
from services.common.messages.passthrough_answer import TokenCounts
from services.common.process.metrics import Counter, Histogram
from services.inference.allowances.admission import Permit
from services.inference.answer_facts import AnswerFacts
from services.inference.balancing.balancer import Balancer
from services.inference.balancing.rate_limits import after_failure, exhausted
from services.inference.circuit_breaker import CircuitBreakers, ModelKey
from services.inference.fallback.attempt_reports import (
    AttemptSpan,
    AttemptSpans,
    FailureLog,
    reason_name,
)
from services.inference.metrics import InferenceMetrics
from services.inference.plans.plan import Step
from services.inference.plans.policy import is_out_of_time, is_transient
from services.inference.stream.patience import UsualSilences

log = logging.getLogger(__name__)

Outcome = Literal["served", "failed", "cancelled", "unsupported"]

# The window of the counts, and the interval in which it advances.
WINDOW_S = 300
_STEP_S = 30
# Retention of a model's latest failure.
FAILURE_KNOWN_S = 3_600.0
# Maximum number of models: callers can name as many as they like.
_MOST = 500

# Nearly all attempts are served, and the access log has a line for those. Failures are logged by
# the failure log.
_LEVELS: dict[Outcome, int] = {
    "served": logging.DEBUG,
    "cancelled": logging.INFO,
    "unsupported": logging.INFO,
}


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

    def add(self, record: "AttemptRecord", now: float) -> None:
        """Count an attempt that has just ended, unless its provider does not support it."""
        outcome, key = record.outcome, record.step.key
        if outcome == "unsupported":
            return
        model = self._models.get(key)
        if model is None:
            if len(self._models) >= _MOST:
                self._models.popitem(last=False)
            model = self._models[key] = _Model()
        number = int(now // _STEP_S)
        if not model.steps or model.steps[-1].number != number:
            model.steps.append(_Counts(number))
        counts = model.steps[-1]
        if outcome == "served":
            counts.served += 1
            counts.served_ms += record.duration_ms
            if record.first_ms is not None:
                counts.first_contents += 1
                counts.first_content_ms += record.first_ms
        elif outcome == "failed":
            counts.failed += 1
            model.failure = Failure(now, record.reason, record.status)
        else:
            counts.cancelled += 1

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


class ReportsUsage(Protocol):
    """The part of an attempt that its record reads.

    Attributes:
        usage: the latest usage that the provider has reported, or None.
    """

    usage: Usage | TokenCounts | None


class AttemptRecord:
    """The record of one attempt, which has exactly one outcome.

    Attributes:
        step: the step of the attempt.
        attempt: the attempt, once it is made.
        began: when the attempt began, by the log's clock.
        facts: what its span says of the answer; None without a span.
        first_ms: milliseconds until the first content; None before that.
        duration_ms: milliseconds until the outcome.
        outcome: the outcome; None while the attempt is under way.
        reason: why the attempt did not succeed, if so.
        status: the HTTP status of a failure, or None.
        delivered_tokens: the estimated tokens of the output that was received, if the attempt
            ended without a complete report of its usage; else None.
        on_first_content: called when the first content has arrived, if given.
        permit: what it has taken from the limits of its deployment, or None.
    """

    __slots__ = (
        *("_is_probe", "_log", "_span"),
        *("attempt", "began", "delivered_tokens", "duration_ms", "facts", "first_ms"),
        *("on_first_content", "outcome", "permit", "reason", "status", "step"),
    )

    def __init__(self, log: "AttemptLog", step: Step, span: AttemptSpan | None) -> None:
        self.outcome: Outcome | None = None
        self._log = log
        self.step = step
        self.attempt: ReportsUsage | None = None
        self.permit: Permit | None = None
        self.delivered_tokens: int | None = None
        self.first_ms: int | None = None
        self.on_first_content: Callable[[], None] | None = None
        self._span = span
        self.facts = None if span is None else AnswerFacts()
        breakers = log.breakers
        self._is_probe = bool(breakers.by_model) and breakers.begin(step.key)
        self.began = log.monotonic()
        self.status: int | None = None
        self.reason: Reason.ValueType = errors_pb2.REASON_UNSPECIFIED
        self.duration_ms = 0

    def ended_by(self, error: BaseException) -> None:
        """Record the outcome that follows from an exception."""
        if isinstance(error, UpstreamError) or is_out_of_time(error):
            self.failed(error)
        elif isinstance(error, GatewayError):
            self.refused(error)
        else:
            self.cancelled()

    def started(self) -> None:
        """Record that the first content has arrived."""
        self.first_ms = int((self._log.monotonic() - self.began) * 1000)
        if self._is_probe:
            self._log.breakers.answers(self.step.key)
        if self.on_first_content is not None:
            self.on_first_content()

    def served(self) -> None:
        """Record that the answer is complete."""
        if self.outcome is None:
            if self._log.breakers.by_model:
                self._log.breakers.succeeded(self.step.key)
            self._close("served")

    def failed(self, error: GatewayError) -> None:
        """Record a failure of the provider, or a timeout."""
        if self.outcome is not None:
            return
        self.reason = error.reason
        breakers, key = self._log.breakers, self.step.key
        if not isinstance(error, UpstreamError):
            # The caller's timeout of the whole chain is no failure of this model.
            breakers.cancelled(key, self._is_probe)
        else:
            self.status = error.status
            if is_transient(error):
                breakers.failed(key, self._is_probe)
            else:
                breakers.succeeded(key)
        self._close("failed")
        self._log.failure_log.write(
            key.provider,
            error,
            {"step": self.step.step_id, "model": str(key), "ms": self.duration_ms},
        )

    def cancelled(self) -> None:
        """Record a cancellation: the caller left, or another model was faster."""
        if self.outcome is None:
            self._log.breakers.cancelled(self.step.key, self._is_probe)
            self.reason = errors_pb2.REASON_CANCELLED
            self._close("cancelled")

    def refused(self, error: GatewayError) -> None:
        """Record that the provider does not support the request; nothing was sent."""
        if self.outcome is None:
            self._log.breakers.cancelled(self.step.key, self._is_probe)
            self.reason = error.reason
            self._close("unsupported")

    def as_message(self) -> Attempt:
        """Return the attempt as listed in errors."""
        return Attempt(
            step=self.step.step_id,
            model=str(self.step.key),
            status=self.status,
            reason=self.reason,
            duration_ms=self.duration_ms,
        )

    def _counted_tokens(self, permit: Permit) -> int:
        """Return the tokens that count for the limits of the deployment.

        Those that its provider has not reported count as reserved, unless it did not answer.
        """
        usage = None if self.attempt is None else self.attempt.usage
        if usage is None:
            is_answered = self.first_ms is not None or self.outcome == "cancelled"
            return permit.amounts.tokens if is_answered else 0
        return (
            usage.input_tokens
            + usage.output_tokens
            + usage.cache_read_input_tokens
            + usage.cache_creation_input_tokens
        )

    def _close(self, outcome: Outcome) -> None:
        self.outcome = outcome
        if self.permit is not None:
            self.permit.end(self._counted_tokens(self.permit), 0)
        self.on_first_content = None  # it refers to the run, and so to this record
        now = self._log.monotonic()
        seconds = now - self.began
        self.duration_ms = round(seconds * 1000)
        self._log.recent.add(self, now)
        self._log.count(self.step.key.provider, outcome, seconds)
        if self._span is not None:
            usage = None if self.attempt is None else self.attempt.usage
            self._span.end(outcome, self.as_message(), seconds, usage, self.facts)
        level = _LEVELS.get(outcome)
        if level is not None and log.isEnabledFor(level):
            fields: dict[str, object] = {
                "step": self.step.step_id,
                "model": str(self.step.key),
                "outcome": outcome,
                "ms": self.duration_ms,
            }
            if self.reason:
                fields["reason"] = reason_name(self.reason)
            log.log(level, "attempt", extra=fields)


class DeploymentRecord(AttemptRecord):
    """The record of an attempt at one of several deployments; updates the deployment's load.

    Args:
        log: the attempt log.
        step: the step of the attempt.
        span: its span; None without a collector.
        load_class: the load class of the request; see `services.inference.balancing.loads`.
    """

    __slots__ = ("_headers", "_load", "_load_class")

    def __init__(
        self, log: "AttemptLog", step: Step, span: AttemptSpan | None, load_class: int
    ) -> None:
        super().__init__(log, step, span)
        self._load_class = load_class
        self._headers: Mapping[str, str] = {}
        self._load = log.loads.of(step.key)
        self._load.calls += 1
        log.loads.metrics.deployment_began(step.key)

    def set_headers(self, headers: Mapping[str, str] | None) -> None:
        """Set the headers of a failed response; to be called before `failed`."""
        if headers is not None:
            self._headers = headers

    def answers(self, headers: Mapping[str, str] | None) -> None:
        """Apply the rate limit headers of an answer that has begun."""
        if headers is not None and (cooldown := exhausted(headers, self._log.loads.now)):
            self._log.loads.cool(self.step.key, cooldown)

    def started(self) -> None:
        """Record that the first content has arrived."""
        super().started()
        now = self._log.monotonic()
        self._load.note(self._load_class, now - self.began, now)

    def failed(self, error: GatewayError) -> None:
        """Record a failure of the provider, or a timeout."""
        if self.outcome is None and isinstance(error, UpstreamError):
            loads = self._log.loads
            headers = self._headers
            cooldown = after_failure(error, headers, loads.now) or exhausted(headers, loads.now)
            if cooldown is not None:
                loads.cool(self.step.key, cooldown)
        super().failed(error)

    def _close(self, outcome: Outcome) -> None:
        self._load.calls -= 1
        self._log.loads.metrics.deployment_ended(self.step.key, outcome)
        super()._close(outcome)


class AttemptLog:
    """Records the attempts of a process.

    Attributes:
        breakers: the circuit breakers of models, updated by each attempt.
        metrics: metrics of attempts, hedges and recoveries.
        failure_log: logs the attempts that failed.
        loads: the loads of deployments, updated by each attempt at one.
        balancer: chooses the deployment of a retry.
        monotonic: monotonic clock, in seconds.
        recent: the attempts of the last minutes.
        stream_idle_s: seconds of silence after which any stream is ended.
        silences: the usual silences of models, updated by each complete stream.
        spans: records spans of attempts; None without a collector.
    """

    def __init__(
        self,
        breakers: CircuitBreakers,
        metrics: InferenceMetrics,
        failure_log: FailureLog,
        balancer: Balancer,
        monotonic: Callable[[], float],
        stream_idle_s: float,
        spans: AttemptSpans | None = None,
    ) -> None:
        self.stream_idle_s = stream_idle_s
        self.silences = UsualSilences()
        self.breakers = breakers
        self.metrics = metrics
        self.failure_log = failure_log
        self.loads = balancer.loads
        self.balancer = balancer
        self.monotonic = monotonic
        self.recent = RecentAttempts(monotonic)
        self.spans = spans
        # Looking a counter up by its labels costs more than counting.
        self._counters: dict[tuple[str, Outcome], tuple[Counter, Histogram]] = {}

    def count(self, provider: str, outcome: Outcome, seconds: float) -> None:
        """Count an attempt at a provider, and its duration."""
        counters = self._counters.get((provider, outcome))
        if counters is None:
            metrics = self.metrics
            counters = (
                metrics.attempts.labels(provider, outcome),
                metrics.attempt_seconds.labels(provider, outcome),
            )
            self._counters[provider, outcome] = counters
        attempts, times = counters
        attempts.inc()
        times.observe(seconds)

    def skip(self, step: Step) -> None:
        """Log that a step is skipped because the circuit breaker of its model is open."""
        log.info("step skipped", extra={"step": step.step_id, "model": str(step.key)})
