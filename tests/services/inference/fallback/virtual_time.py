"""Tests that wait for hours and take no time: a loop whose clock jumps to the next timer."""

import asyncio
import functools
import selectors
from collections.abc import Awaitable, Callable
from typing import Any

_THREADS_HAVE_S = 60.0


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None):
        ready = super().select(0)
        if not ready and timeout is None:
            # Only a thread may still wake the loop.
            ready = super().select(_THREADS_HAVE_S)
        if not ready and timeout is None:
            raise AssertionError("everything waits, and nothing will ever happen")
        if not ready:
            # Rounding must not leave the clock a hair before the timer.
            self.now += (timeout or 0.0) + 1e-9
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def timeless() -> asyncio.Runner:
    """Return a runner of coroutines on a loop of virtual time."""
    return asyncio.Runner(loop_factory=_Loop)


def in_no_time(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on a loop of virtual time; no task may be left behind."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def checked() -> None:
            await test(*args, **kwargs)
            await asyncio.sleep(0)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left

        with timeless() as runner:
            runner.run(checked())

    return run
