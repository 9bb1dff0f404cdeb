"""Measurement of the event loop's delay."""

import asyncio

from facade.reports import FacadeMetrics

_EVERY_S = 0.5


class LoopDelay:
    """Observes how late a periodic timer of the event loop fires, in seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, metrics: FacadeMetrics) -> None:
        """Start measuring."""
        self._loop = loop
        self._seconds = metrics.loop_delay_seconds
        self._begin()

    def stop(self) -> None:
        """Stop measuring."""
        self._timer.cancel()

    def _begin(self) -> None:
        self._due = self._loop.time() + _EVERY_S
        self._timer = self._loop.call_at(self._due, self._observe)

    def _observe(self) -> None:
        self._seconds.observe(max(self._loop.time() - self._due, 0.0))
        self._begin()
