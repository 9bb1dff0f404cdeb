"""Hedging: while a model is silent another is asked beside it, and the first content wins.

Costs one timer while the first one is quick: a task is made only for the second.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from services.common.far_timers import FarTimer, FarTimers


class Closable(Protocol):
    """What has to be closed if nobody wants it."""

    async def close(self) -> None:
        """Close it."""


T = TypeVar("T", bound=Closable)
# Called once, when the first content of an answer has come.
OnFirstContent = Callable[[], None]


class Hedge(Generic[T]):
    """One race.

    Args:
        timers: those of the running event loop.
        after_s: how long the first may be silent.
        start: asks the second, and calls what it is given when that speaks; None when
            nobody may be asked now.
        spoken: called once, when anybody speaks.

    Attributes:
        decided: whether the second's outcome was the race's.
    """

    def __init__(
        self,
        timers: FarTimers,
        after_s: float,
        start: Callable[[OnFirstContent], Coroutine[Any, Any, T] | None],
        spoken: OnFirstContent,
    ) -> None:
        self.decided = False
        self._timers = timers
        self._after_s = after_s
        self._start = start
        self._tell = spoken
        self._told = False
        # Of the race, while the first may be interrupted.
        self._task: asyncio.Task[Any] | None = None
        self._is_interrupted = False
        self._timer: FarTimer | None = None
        self._rival: asyncio.Task[T] | None = None
        self._dropped: asyncio.Task[T] | None = None

    async def race(
        self, first: Callable[[OnFirstContent], Awaitable[T]], ends: Callable[[Exception], bool]
    ) -> T:
        """Return the answer of whoever speaks first.

        When the first fails while the second is under way, the second decides, unless
        `ends` says that the failure ends it all. Whoever is not wanted is cancelled and
        gone when this returns.
        """
        loop = self._timers.loop
        task = self._task = asyncio.current_task(loop)
        assert task is not None, "it runs in a task"
        cancelling = task.cancelling()
        self._timer = self._timers.call_at(loop.time() + self._after_s, self._start_rival)
        try:
            try:
                return await first(self._first_speaks)
            except asyncio.CancelledError:
                # One that comes from outside at the same moment is not lost.
                if not self._is_interrupted or task.cancelling() > cancelling + 1:
                    raise
            except Exception as error:
                if self._rival is None or ends(error):
                    raise
            finally:
                self._task = None
                self._timer.cancel()
                if self._is_interrupted:
                    task.uncancel()
            self.decided = True
            rival = self._rival
            assert rival is not None
            result = await rival
            self._rival = None
            return result
        finally:
            # Nearly always there is no second.
            if self._rival is not None:
                self._drop()
            if self._dropped is not None:
                await self._clear(self._dropped)

    def _start_rival(self) -> None:
        coroutine = self._start(self._rival_speaks)
        if coroutine is not None:
            self._rival = self._timers.loop.create_task(coroutine)

    def _first_speaks(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._rival is not None:
            self._drop()
        self._speak()

    def _rival_speaks(self) -> None:
        # As a timeout does, it cancels the task, which takes the cancellation back.
        if self._task is not None and not self._is_interrupted:
            self._is_interrupted = True
            self._task.cancel()
        self._speak()

    def _speak(self) -> None:
        if not self._told:
            self._told = True
            self._tell()

    def _drop(self) -> None:
        """Cancel the second."""
        if self._rival is not None:
            self._rival.cancel()
            self._dropped, self._rival = self._rival, None

    async def _clear(self, dropped: asyncio.Task[T]) -> None:
        """Wait until a second that was dropped is gone, and what it may have won is closed."""
        await asyncio.wait([dropped])
        if not dropped.cancelled() and dropped.exception() is None:
            await dropped.result().close()
