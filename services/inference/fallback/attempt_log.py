"""The attempt log: begins the records of attempts, and counts them."""

import logging
from collections.abc import Callable

from services.common.metrics import Counter, Histogram
from services.common.telemetry.spans import Telemetry
from services.common.telemetry.trace_context import TraceContext
from services.inference.balancing.balancer import Balancer
from services.inference.circuit_breaker import CircuitBreakers
from services.inference.fallback.attempt_record import AttemptRecord, DeploymentRecord, Outcome
from services.inference.fallback.attempt_spans import AttemptSpans
from services.inference.fallback.failure_log import FailureLog
from services.inference.fallback.recent_attempts import RecentAttempts
from services.inference.metrics import Metrics
from services.inference.plans.plan import Step

log = logging.getLogger(__name__)


class AttemptLog:
    """Writes down the attempts of a process.

    Attributes:
        breakers: those of the models; each attempt counts.
        metrics: of attempts, hedges and recoveries.
        failure_log: of the attempts that failed.
        loads: those of deployments; each attempt at one counts.
        balancer: chooses the deployment of a retry.
        monotonic: seconds of a clock that never goes back.
        recent: the attempts of the last minutes.
        spans: of the attempts, where there is a collector.
    """

    def __init__(
        self,
        breakers: CircuitBreakers,
        metrics: Metrics,
        failure_log: FailureLog,
        balancer: Balancer,
        monotonic: Callable[[], float],
        telemetry: Telemetry | None = None,
    ) -> None:
        self.breakers = breakers
        self.metrics = metrics
        self.failure_log = failure_log
        self.loads = balancer.loads
        self.balancer = balancer
        self.monotonic = monotonic
        self.recent = RecentAttempts(monotonic)
        self.spans = None if telemetry is None else AttemptSpans(telemetry)
        # Looking a counter up by its labels costs more than counting.
        self._counters: dict[tuple[str, Outcome], tuple[Counter, Histogram]] = {}

    def count(self, provider: str, outcome: Outcome, seconds: float) -> None:
        """Count an attempt at a provider, which took so long."""
        found = self._counters.get((provider, outcome))
        if found is None:
            metrics = self.metrics
            found = (
                metrics.attempts.labels(provider, outcome),
                metrics.attempt_seconds.labels(provider, outcome),
            )
            self._counters[provider, outcome] = found
        attempts, times = found
        attempts.inc()
        times.observe(seconds)

    def begin(
        self, step: Step, load_class: int = 0, parent: TraceContext | None = None
    ) -> AttemptRecord:
        """Return the record of an attempt at a step's model, which begins.

        With a collector it is a span of the trace of `parent`.
        """
        span = None if self.spans is None else self.spans.begin(step, parent)
        if step.group is not None:
            return DeploymentRecord(self, step, span, load_class)
        return AttemptRecord(self, step, span)

    def skip(self, step: Step) -> None:
        """Write down that a step is left out because its model keeps failing."""
        log.info("step skipped", extra={"step": step.step_id, "model": str(step.key)})
