"""Timers that are nearly always cancelled long before they are due."""

import asyncio
from collections.abc import Callable
from functools import cached_property


class FarTimer:
    """A function to be called at a time."""

    __slots__ = ("_callback", "_near", "_others", "_when")

    def __init__(
        self, when: float, callback: Callable[[], object], others: "set[FarTimer]"
    ) -> None:
        self._when = when
        # None once cancelled: whoever is called often holds the timer.
        self._callback: Callable[[], object] | None = callback
        self._others = others  # due in the same second
        self._near: asyncio.TimerHandle | None = None
        others.add(self)

    def approach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait on the loop itself: the second has begun."""
        assert self._callback is not None, "it has not been cancelled"
        self._near = loop.call_at(self._when, self._callback)

    def cancel(self) -> None:
        """Call nothing; a timer may be cancelled any number of times, also after its call."""
        self._others.discard(self)
        self._callback = None
        if self._near is not None:
            self._near.cancel()


class FarTimers:
    """Far timers of one event loop, as exact as the loop's own.

    Each of those takes as long to set and cancel as twenty calls of functions. Far ones share one
    for the second in which they are due, at the beginning of which the remaining ones get their
    own.
    """

    def __init__(self) -> None:
        self._seconds: dict[int, set[FarTimer]] = {}

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop, which runs at the first use; to ask for it takes a system call."""
        return asyncio.get_running_loop()

    def call_at(self, when: float, callback: Callable[[], object]) -> FarTimer:
        """Call a function at a time of the loop's clock; return what cancels the call."""
        second = int(when)
        timers = self._seconds.get(second)
        if timers is None:
            timers = self._seconds[second] = set()
            self.loop.call_at(second, self._approach, second)
        return FarTimer(when, callback, timers)

    def _approach(self, second: int) -> None:
        for timer in self._seconds.pop(second):
            timer.approach(self.loop)
