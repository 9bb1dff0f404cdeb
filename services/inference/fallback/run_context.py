"""The state that the steps of one fallback run share, and the time and retries that are left."""

import asyncio
from collections.abc import Callable

from gateway.errors.v1.errors_pb2 import Attempt
from services.common.errors import GatewayError
from services.common.far_timers import FarTimers
from services.common.telemetry.trace_context import current_trace
from services.inference.circuit_breaker import Uniform
from services.inference.fallback.attempt_log import AttemptLog, AttemptRecord
from services.inference.fallback.attempts import AttemptFactory
from services.inference.plans.plan import Plan, Step
from services.inference.stream.delivered import DeliveredPrefix

# Called with the context of a run that has ended.
OnEnd = Callable[["RunContext"], None]


class RetryBudget:
    """What is left of a plan's time and retries; runs of one request share it.

    Attributes:
        deadline: when the time of the plan is over, by the loop's clock; None without a limit.
    """

    __slots__ = ("_retries", "deadline")

    def __init__(self, deadline: float | None, retries: int | None) -> None:
        """Return a budget with a deadline and so many retries; None is no limit."""
        self.deadline = deadline
        self._retries = retries

    @property
    def allows_retry(self) -> bool:
        """Whether there is a retry left."""
        return self._retries is None or self._retries > 0

    def take_retry(self) -> None:
        """Use a retry."""
        if self._retries is not None:
            self._retries -= 1


# Nothing of it is ever used up.
_UNLIMITED = RetryBudget(None, None)


def _budget_of(plan: Plan, loop: asyncio.AbstractEventLoop) -> RetryBudget:
    """Return the whole budget of a plan that begins now; those without limits share one."""
    if plan.timeout_s is None and plan.max_retries is None:
        return _UNLIMITED
    deadline = None if plan.timeout_s is None else loop.time() + plan.timeout_s
    return RetryBudget(deadline, plan.max_retries)


class RunContext:
    """What the steps of one run share.

    Attributes:
        timers: those of the running event loop.
        parent: the trace that all attempts are part of, where they are recorded.
        plan: what may be tried.
        attempts: makes the attempts.
        log: where they are written down.
        uniform: random source for jitter.
        whole: whether the answer is wanted whole.
        budget: the time and the retries that are left.
        records: of all attempts, in order.
        delivered: what of an answer that broke off has gone out, if any.
        retries: how many each step has had, by its index, or by the group of its deployments.
        tried: indexes of the deployments that have failed, of models with several.
        on_end: called once, when the run has ended.
    """

    __slots__ = (
        *("attempts", "budget", "delivered", "log", "on_end", "parent"),
        *("plan", "records", "retries", "timers", "tried", "uniform", "whole"),
    )

    def __init__(
        self,
        timers: FarTimers,
        plan: Plan,
        attempts: AttemptFactory,
        log: AttemptLog,
        uniform: Uniform,
        on_end: OnEnd,
        *,
        whole: bool,
        budget: RetryBudget | None = None,
    ) -> None:
        """Begin a run; without a `budget` it has the plan's."""
        self.timers = timers
        self.parent = None if log.spans is None else current_trace.get()
        self.plan = plan
        self.attempts = attempts
        self.log = log
        self.uniform = uniform
        self.whole = whole
        self.budget = budget or _budget_of(plan, timers.loop)
        self.records: list[AttemptRecord] = []
        self.delivered: DeliveredPrefix | None = None
        self.retries: dict[object, int] = {}
        self.tried: frozenset[int] = frozenset()
        self.on_end = on_end

    def begin(self, step: Step) -> AttemptRecord:
        """Return the record of an attempt that begins."""
        record = self.log.begin(step, self.plan.load_class, self.parent)
        self.records.append(record)
        return record

    def deadline(self, step: Step, began: float) -> float:
        """Return when a step that began at `began` has to answer, by the loop's clock."""
        own, overall = began + step.timeout_s, self.budget.deadline
        return own if overall is None else min(own, overall)

    def attempts_made(self) -> int:
        """Return how many attempts have been sent to a provider."""
        return sum([record.outcome != "unsupported" for record in self.records])

    def failed_attempts(self) -> list[Attempt]:
        """Return the attempts that providers have failed so far."""
        return [record.attempt() for record in self.records if record.outcome == "failed"]

    def with_attempts(self, error: GatewayError) -> GatewayError:
        """Add to a failure the attempts that were made."""
        error.attempts = [
            record.attempt()
            for record in self.records
            if record.outcome != "served"
            # A model that cannot carry a request is named only where others were tried.
            and (record.outcome != "unsupported" or len(self.records) > 1)
        ]
        return error
