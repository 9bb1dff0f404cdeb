"""An idle timer."""

import asyncio
from collections.abc import Callable


class IdleTimer:
    """Calls back whenever it has not been touched for some time, until it is stopped.

    Touching it costs next to nothing: the loop's own timer is set anew only where it
    goes off too early.
    """

    def __init__(self, after_s: float, callback: Callable[[], object]) -> None:
        """Begin now; `after_s` is in seconds."""
        self._loop = asyncio.get_running_loop()
        self._after_s = after_s
        self._callback: Callable[[], object] | None = callback
        self._last = self._loop.time()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(after_s, self._look)

    def touch(self) -> None:
        """Begin anew."""
        self._last = self._loop.time()

    def stop(self) -> None:
        """Call back no more."""
        if self._timer is not None:
            self._timer.cancel()
        # Whoever is called back often holds the timer, and both are to go at once.
        self._timer = self._callback = None

    def _look(self) -> None:
        now = self._loop.time()
        if now >= self._last + self._after_s and self._callback is not None:
            self._last = now
            self._callback()
        if self._callback is not None:
            self._timer = self._loop.call_at(self._last + self._after_s, self._look)
