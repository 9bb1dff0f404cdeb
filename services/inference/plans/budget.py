"""The time and the retries that a fallback chain has in all."""

import asyncio

from services.inference.plans.plan import Plan


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


def budget_of(plan: Plan, loop: asyncio.AbstractEventLoop) -> RetryBudget:
    """Return the whole budget of a plan that begins now; those without limits share one."""
    if plan.timeout_s is None and plan.max_retries is None:
        return _UNLIMITED
    deadline = None if plan.timeout_s is None else loop.time() + plan.timeout_s
    return RetryBudget(deadline, plan.max_retries)
