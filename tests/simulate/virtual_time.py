"""An event loop whose clock goes on at once to the next timer."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """A selector that never waits: it moves the clock on in place of that."""

    def __init__(self, loop: "VirtualTimeLoop") -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("the simulation waits for nothing")
        self._loop.now_s += max(0.0, timeout)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop for code without I/O, whose waits take no time.

    Attributes:
        now_s: seconds since the beginning of the simulation.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Return the simulated time."""
        return self.now_s


def simulate(run: Callable[[VirtualTimeLoop], Awaitable[T]]) -> T:
    """Return what `run` returns, in simulated time."""
    loop = VirtualTimeLoop()
    try:
        return loop.run_until_complete(run(loop))
    finally:
        loop.close()
