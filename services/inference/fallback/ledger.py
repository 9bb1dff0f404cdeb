"""Every attempt is written down: in the log, the metrics, the breakers and the error."""

import logging
from collections.abc import Callable
from typing import Literal

from prometheus_client import Counter

from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt, Reason
from services.common.errors import GatewayError, UpstreamError
from services.inference.fallback.breakers import Breakers
from services.inference.fallback.failure_log import FailureLog
from services.inference.fallback.failures import is_transient
from services.inference.fallback.plan import Step
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


class Record:
    """One attempt, from when it begins to its one outcome.

    Attributes:
        outcome: None while it is under way.
    """

    def __init__(self, ledger: "Ledger", step: Step) -> None:
        self.outcome: Outcome | None = None
        self._ledger = ledger
        self._step = step
        self._key = step.key
        self._probe = ledger.breakers.begin(self._key)
        self._began = ledger.monotonic()
        self._status: int | None = None
        self._reason: Reason.ValueType = errors_pb2.REASON_UNSPECIFIED
        self._ms = 0

    def answers(self) -> None:
        """Its first content has come."""
        if self._probe:
            self._ledger.breakers.answers(self._key)

    def served(self) -> None:
        """It has answered to the end."""
        if self.outcome is None:
            self._ledger.breakers.succeeded(self._key)
            self._close("served")

    def failed(self, error: GatewayError) -> None:
        """It failed, at the provider or at a bound of the gateway's."""
        if self.outcome is not None:
            return
        self._reason = error.reason
        if not isinstance(error, UpstreamError):
            # The caller's bound on everything, which says little of this model.
            self._ledger.breakers.cancelled(self._key, self._probe)
        else:
            self._status = error.status
            if is_transient(error):
                self._ledger.breakers.failed(self._key, self._probe)
            else:
                self._ledger.breakers.succeeded(self._key)
        self._close("failed")
        self._ledger.failure_log.write(
            self._key.provider,
            error,
            {"step": self._step.step_id, "model": str(self._key), "ms": self._ms},
        )

    def cancelled(self) -> None:
        """It was given up: the caller left, or another model was faster."""
        if self.outcome is None:
            self._ledger.breakers.cancelled(self._key, self._probe)
            self._reason = errors_pb2.REASON_CANCELLED
            self._close("cancelled")

    def refused(self, error: GatewayError) -> None:
        """Its provider could not be sent the request; nothing was."""
        self._ledger.breakers.cancelled(self._key, self._probe)
        self._reason = error.reason
        self._close("unsupported")

    def attempt(self) -> Attempt:
        """Return it as callers are told of it."""
        return Attempt(
            step=self._step.step_id,
            model=str(self._key),
            status=self._status,
            reason=self._reason,
            duration_ms=self._ms,
        )

    def _close(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._ms = round((self._ledger.monotonic() - self._began) * 1000)
        self._ledger.count(self._key.provider, outcome)
        level = _LEVELS.get(outcome)
        if level is not None and log.isEnabledFor(level):
            told: dict[str, object] = {
                "step": self._step.step_id,
                "model": str(self._key),
                "outcome": outcome,
                "ms": self._ms,
            }
            if self._reason:
                told["reason"] = Reason.Name(self._reason).removeprefix("REASON_").lower()
            log.log(level, "attempt", extra=told)


class Ledger:
    """Writes down the attempts of a process.

    Attributes:
        breakers: learn from each of them.
        metrics: count them.
        failure_log: tells of those that failed.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        breakers: Breakers,
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

    def begin(self, step: Step) -> Record:
        """Open the record of an attempt at a step's model."""
        return Record(self, step)

    def skip(self, step: Step) -> None:
        """Write down that a step is left out because its model keeps failing."""
        log.info("step skipped", extra={"step": step.step_id, "model": str(step.key)})
