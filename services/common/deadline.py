"""A timeout for the current task that is cheap enough for every request."""

import asyncio
from types import TracebackType
from typing import Self

from services.common.far_timers import FarTimers


class Deadline:
    """Cancels what is in its `with` block at a time, and raises `TimeoutError` there.

    It does what `asyncio.timeout_at` does for a fraction of the cost. A cancellation that comes
    from outside at the same moment is not lost.
    """

    __slots__ = ("_cancelling", "_is_over", "_task", "_timer", "_timers", "_when")

    def __init__(self, timers: FarTimers, when: float) -> None:
        """Return a bound at `when`, by the clock of the running loop, whose `timers` are given."""
        self._timers = timers
        self._when = when
        self._is_over = False

    def __enter__(self) -> Self:
        task = asyncio.current_task(self._timers.loop)
        assert task is not None, "it is used in a task"
        self._task = task
        self._cancelling = task.cancelling()
        self._timer = self._timers.call_at(self._when, self._expire)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if (
            self._is_over
            and self._task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError from error

    def _expire(self) -> None:
        self._is_over = True
        self._task.cancel()
