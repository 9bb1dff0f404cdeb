"""An idle timer."""

from collections.abc import Callable

from services.common.far_timers import FarTimer, FarTimers


class IdleTimer:
    """Calls back whenever it has not been touched for some time, until it is stopped.

    Touching it costs next to nothing: the timer behind it is set anew only where it goes off too
    early.
    """

    def __init__(self, timers: FarTimers, after_s: float, callback: Callable[[], object]) -> None:
        """Begin now; `after_s` is in seconds."""
        self._timers = timers
        self._now = timers.loop.time
        self._after_s = after_s
        self._callback: Callable[[], object] | None = callback
        self._last = self._now()
        self._timer: FarTimer | None = timers.call_at(self._last + after_s, self._look)

    def touch(self) -> None:
        """Begin anew."""
        self._last = self._now()

    def stop(self) -> None:
        """Call back no more."""
        if self._timer is not None:
            self._timer.cancel()
        # Whoever is called back often holds the timer, and both are to go at once.
        self._timer = self._callback = None

    def _look(self) -> None:
        now = self._now()
        if now >= self._last + self._after_s and self._callback is not None:
            self._last = now
            self._callback()
        if self._callback is not None:
            self._timer = self._timers.call_at(self._last + self._after_s, self._look)
