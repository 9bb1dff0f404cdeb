"""Timers that are nearly always stopped long before they are due: of timeouts, of idleness."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import Self


class TimerHandle:
    """Handle of a scheduled callback.

    Attributes:
        when: time of the call, on the loop's clock.
    """

    __slots__ = ("_callback", "_near", "_others", "when")

    def __init__(self, timers: "TimerWheel", when: float, callback: Callable[[], object]) -> None:
        """Schedule a callback at a time of the loop's clock."""
        self.when = when
        # None once cancelled: the callback's object often refers to the timer, which is a cycle.
        self._callback: Callable[[], object] | None = callback
        self._near: asyncio.TimerHandle | None = None
        second = int(when)
        others = timers.by_second.get(second)
        if others is None:
            others = timers.by_second[second] = set()
            timers.loop.call_at(second, timers.approach, second)
        self._others = others  # that are due in the same second
        others.add(self)

    def approach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Schedule the callback on the event loop: its second has begun."""
        assert self._callback is not None, "it has not been cancelled"
        self._near = loop.call_at(self.when, self._callback)

    def cancel(self) -> None:
        """Cancel the callback; has no effect after a cancellation or after the callback's call."""
        self._others.discard(self)
        self._callback = None
        if self._near is not None:
            self._near.cancel()


class TimerWheel:
    """Distant timers of one event loop, as exact as the loop's own.

    Scheduling and cancelling a loop timer costs as much as twenty function calls. Distant timers
    therefore share one loop timer per second; when that second begins, the remaining ones are
    scheduled individually.

    Attributes:
        by_second: the timers that are due in each second, on the loop's clock.
    """

    def __init__(self) -> None:
        self.by_second: dict[int, set[TimerHandle]] = {}

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that runs at the first use. Cached: getting it takes a system call."""
        return asyncio.get_running_loop()

    def approach(self, second: int) -> None:
        """Schedule the timers of a second on the event loop, as it begins."""
        for timer in self.by_second.pop(second):
            timer.approach(self.loop)


class Deadline(TimerHandle):
    """Timeout that cancels its `with` block at a time, and then raises `TimeoutError`.

    Like `asyncio.timeout_at`, at a fraction of the cost. A cancellation from outside at the same
    moment is not lost.
    """

    __slots__ = ("_cancelling", "_is_over", "_task", "_timers")

    def __init__(self, timers: TimerWheel, when: float) -> None:
        """Create a timeout at `when`, on the clock of the running loop to which `timers` belong."""
        self.when = when
        self._timers = timers
        self._is_over = False

    def __enter__(self) -> Self:
        task = asyncio.current_task(self._timers.loop)
        assert task is not None, "it is used in a task"
        self._task = task
        self._cancelling = task.cancelling()
        super().__init__(self._timers, self.when, self._expire)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()
        if (
            self._is_over
            and self._task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError from error

    def _expire(self) -> None:
        self._is_over = True
        self._task.cancel()


class IdleTimer:
    """Timer that calls back whenever it has not been touched for some time, until it is stopped.

    `touch` costs almost nothing: the underlying timer is rescheduled only when it expires early.
    """

    def __init__(self, timers: TimerWheel, after_s: float, callback: Callable[[], object]) -> None:
        """Start the timer; `after_s` is the idle time in seconds."""
        self._timers = timers
        self._now = timers.loop.time
        self._after_s = after_s
        self._callback: Callable[[], object] | None = callback
        self._last = self._now()
        self._timer: TimerHandle | None = TimerHandle(timers, self._last + after_s, self._look)

    def touch(self) -> None:
        """Restart the idle time."""
        self._last = self._now()

    def stop(self) -> None:
        """Stop the timer; there are no further callbacks."""
        if self._timer is not None:
            self._timer.cancel()
        # The callback's object often refers to the timer: break the cycle, so both are freed now.
        self._timer = self._callback = None

    def _look(self) -> None:
        now = self._now()
        if now >= self._last + self._after_s and self._callback is not None:
            self._last = now
            self._callback()
        if self._callback is not None:
            self._timer = TimerHandle(self._timers, self._last + self._after_s, self._look)
