"""The attempt log: what became of each attempt, for logs, metrics, breakers and errors."""

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Literal, Protocol, Self

from prometheus_client import Counter

from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt, Reason
from services.common.errors import GatewayError, UpstreamError
from services.inference.fallback.circuit_breaker import CircuitBreakers
from services.inference.fallback.failure_log import FailureLog
from services.inference.fallback.plan import Step
from services.inference.fallback.policy import is_out_of_time, is_transient
from services.inference.metrics import Metrics

log = logging.getLogger(__name__)

Outcome = Literal["served", "failed", "cancelled", "unsupported"]

# Nearly all attempts are served, and the access log tells of those. Failures have lines of
# their own.
_LEVELS: dict[Outcome, int] = {
    "served": logging.DEBUG,
    "cancelled": logging.INFO,
    "unsupported": logging.INFO,
}


class Attempted(Protocol):
    """What an attempt tells of its answer.

    Attributes:
        usage: the latest that the provider has reported, or None.
    """

    usage: Usage | None


class AttemptRecord:
    """One attempt, from its beginning to its one outcome.

    In a `with` block around what may fail it notes the failure.

    Attributes:
        step: whose model is asked.
        asked: the attempt, once it is made.
        began: when it began, by the log's clock.
        first_ms: milliseconds until the first content came; None before.
        duration_ms: milliseconds until its outcome.
        outcome: None while the attempt is under way.
    """

    __slots__ = (
        *("_is_probe", "_log", "_reason", "_status"),
        *("asked", "began", "duration_ms", "first_ms", "outcome", "step"),
    )

    def __init__(self, log: "AttemptLog", step: Step) -> None:
        self.outcome: Outcome | None = None
        self._log = log
        self.step = step
        self.asked: Attempted | None = None
        self.first_ms: int | None = None
        self._is_probe = log.breakers.begin(step.key)
        self.began = log.monotonic()
        self._status: int | None = None
        self._reason: Reason.ValueType = errors_pb2.REASON_UNSPECIFIED
        self.duration_ms = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            return
        if isinstance(error, UpstreamError) or is_out_of_time(error):
            self.failed(error)
        elif isinstance(error, GatewayError):
            self.refused(error)
        else:
            self.cancelled()

    def started(self) -> None:
        """Note that the first content has come."""
        self.first_ms = int((self._log.monotonic() - self.began) * 1000)
        if self._is_probe:
            self._log.breakers.answers(self.step.key)

    def served(self) -> None:
        """Note that the answer has come to its end."""
        if self.outcome is None:
            self._log.breakers.succeeded(self.step.key)
            self._close("served")

    def failed(self, error: GatewayError) -> None:
        """Note a failure of the provider, or that a time limit has passed."""
        if self.outcome is not None:
            return
        self._reason = error.reason
        breakers, key = self._log.breakers, self.step.key
        if not isinstance(error, UpstreamError):
            # The caller's limit on the whole chain, which says little of this model.
            breakers.cancelled(key, self._is_probe)
        else:
            self._status = error.status
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
        """Note that nobody wants the answer: the caller left, or another model was faster."""
        if self.outcome is None:
            self._log.breakers.cancelled(self.step.key, self._is_probe)
            self._reason = errors_pb2.REASON_CANCELLED
            self._close("cancelled")

    def refused(self, error: GatewayError) -> None:
        """Note that the provider cannot be sent the request; nothing was sent."""
        if self.outcome is None:
            self._log.breakers.cancelled(self.step.key, self._is_probe)
            self._reason = error.reason
            self._close("unsupported")

    def attempt(self) -> Attempt:
        """Return the attempt as errors name it."""
        return Attempt(
            step=self.step.step_id,
            model=str(self.step.key),
            status=self._status,
            reason=self._reason,
            duration_ms=self.duration_ms,
        )

    def _close(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.duration_ms = round((self._log.monotonic() - self.began) * 1000)
        self._log.count(self.step.key.provider, outcome)
        level = _LEVELS.get(outcome)
        if level is not None and log.isEnabledFor(level):
            told: dict[str, object] = {
                "step": self.step.step_id,
                "model": str(self.step.key),
                "outcome": outcome,
                "ms": self.duration_ms,
            }
            if self._reason:
                told["reason"] = Reason.Name(self._reason).removeprefix("REASON_").lower()
            log.log(level, "attempt", extra=told)


class AttemptLog:
    """Writes down the attempts of a process.

    Attributes:
        breakers: those of the models; each attempt counts.
        metrics: of attempts, hedges and recoveries.
        failure_log: of the attempts that failed.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        breakers: CircuitBreakers,
        metrics: Metrics,
        failure_log: FailureLog,
        monotonic: Callable[[], float],
    ) -> None:
        self.breakers = breakers
        self.metrics = metrics
        self.failure_log = failure_log
        self.monotonic = monotonic
        # Looking a counter up by its labels costs more than counting.
        self._counters: dict[tuple[str, Outcome], Counter] = {}

    def count(self, provider: str, outcome: Outcome) -> None:
        """Count an attempt at a provider."""
        counter = self._counters.get((provider, outcome))
        if counter is None:
            counter = self.metrics.attempts.labels(provider, outcome)
            self._counters[provider, outcome] = counter
        counter.inc()

    def begin(self, step: Step) -> AttemptRecord:
        """Return the record of an attempt at a step's model, which begins."""
        return AttemptRecord(self, step)

    def skip(self, step: Step) -> None:
        """Write down that a step is left out because its model keeps failing."""
        log.info("step skipped", extra={"step": step.step_id, "model": str(step.key)})
