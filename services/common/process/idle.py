"""An idle timer."""

from collections.abc import Callable

from services.common.process.timer_wheel import TimerHandle, TimerWheel


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
        self._timer: TimerHandle | None = timers.call_at(self._last + after_s, self._look)

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
            self._timer = self._timers.call_at(self._last + self._after_s, self._look)
