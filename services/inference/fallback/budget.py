"""The time and the retries that a fallback chain has in all."""

from services.inference.fallback.plan import Plan


class RetryBudget:
    """What is left of a plan's time and retries; runs of one request share it.

    Attributes:
        deadline: when the time of the plan is over, by the loop's clock; None without a limit.
    """

    __slots__ = ("_retries", "deadline")

    def __init__(self, plan: Plan, now: float) -> None:
        """Return the whole budget of a plan that begins at `now`, by the loop's clock."""
        self.deadline = None if plan.timeout_s is None else now + plan.timeout_s
        self._retries = plan.max_retries

    @property
    def allows_retry(self) -> bool:
        """Whether there is a retry left."""
        return self._retries is None or self._retries > 0

    def take_retry(self) -> None:
        """Use a retry."""
        if self._retries is not None:
            self._retries -= 1
