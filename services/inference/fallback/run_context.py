"""The state shared by the steps of one fallback run, and the budget of time and retries."""

import asyncio
from collections.abc import Callable

from gateway.errors.v1.errors_pb2 import Attempt
from services.common.errors import GatewayError
from services.common.process.telemetry.trace_context import current_trace
from services.common.process.timer_wheel import TimerWheel
from services.inference.circuit_breaker import Uniform
from services.inference.fallback.attempt_log import AttemptLog, AttemptRecord
from services.inference.fallback.attempts import AttemptFactory
from services.inference.plans.plan import Plan, Step
from services.inference.stream.delivered import DeliveredPrefix

# Called with the context of a run when it has ended.
OnEnd = Callable[["RunContext"], None]


class RetryBudget:
    """The remaining time and retries of a plan, shared by the runs of one request.

    Attributes:
        deadline: the deadline of the plan, by the loop's clock; None without a limit.
    """

    __slots__ = ("_retries", "deadline")

    def __init__(self, deadline: float | None, retries: int | None) -> None:
        """Return a budget with a deadline and a number of retries; None means no limit."""
        self.deadline = deadline
        self._retries = retries

    @property
    def allows_retry(self) -> bool:
        """Whether a retry is left."""
        return self._retries is None or self._retries > 0

    def take_retry(self) -> None:
        """Use a retry."""
        if self._retries is not None:
            self._retries -= 1


# Shared by all plans without limits; it is never decremented.
_UNLIMITED = RetryBudget(None, None)


def _budget_of(plan: Plan, loop: asyncio.AbstractEventLoop) -> RetryBudget:
    """Return the full budget of a plan that begins now."""
    if plan.timeout_s is None and plan.max_retries is None:
        return _UNLIMITED
    deadline = None if plan.timeout_s is None else loop.time() + plan.timeout_s
    return RetryBudget(deadline, plan.max_retries)


class RunContext:
    """The state shared by the steps of one run.

    Attributes:
        timers: timers of the running event loop.
        parent: the trace context of the attempts' spans; None if no spans are recorded.
        plan: the plan.
        attempts: makes the attempts.
        log: records the attempts.
        uniform: random source for jitter.
        whole: whether a whole answer is returned instead of a stream.
        budget: the remaining time and retries.
        records: the records of all attempts, in order.
        delivered: the delivered part of an answer that broke off, or None.
        retries: number of retries by step index, or by the group of the step's deployments.
        tried: indexes of steps whose deployment has failed, for models with several.
        on_end: called once, when the run has ended.
    """

    __slots__ = (
        *("attempts", "budget", "delivered", "log", "on_end", "parent"),
        *("plan", "records", "retries", "timers", "tried", "uniform", "whole"),
    )

    def __init__(
        self,
        timers: TimerWheel,
        plan: Plan,
        attempts: AttemptFactory,
        log: AttemptLog,
        uniform: Uniform,
        on_end: OnEnd,
        *,
        whole: bool,
        budget: RetryBudget | None = None,
    ) -> None:
        """Begin a run, by default with the full budget of the plan."""
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
        """Begin an attempt at a step; return its record."""
        record = self.log.begin(step, self.plan.load_class, self.parent)
        self.records.append(record)
        return record

    def deadline(self, step: Step, began: float) -> float:
        """Return the deadline of a step that began at `began`, by the loop's clock."""
        own, overall = began + step.timeout_s, self.budget.deadline
        return own if overall is None else min(own, overall)

    def attempts_made(self) -> int:
        """Return the number of attempts that were sent to a provider."""
        return sum([record.outcome != "unsupported" for record in self.records])

    def failed_attempts(self) -> list[Attempt]:
        """Return the attempts that have failed so far."""
        return [record.as_message() for record in self.records if record.outcome == "failed"]

    def with_attempts(self, error: GatewayError) -> GatewayError:
        """Set the `attempts` of an error to those made in this run; return the error."""
        error.attempts = [
            record.as_message()
            for record in self.records
            if record.outcome != "served"
            # An unsupported attempt is listed only if there are others.
            and (record.outcome != "unsupported" or len(self.records) > 1)
        ]
        return error
