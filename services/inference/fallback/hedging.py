"""Hedging: a second model is called beside a silent one, and the first content wins.

If the first model is quick, this costs one timer: a task is created only for the second model.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from services.common.process.timer_wheel import TimerHandle, TimerWheel


class Closable(Protocol):
    """A result that has to be closed if it is not used."""

    async def close(self) -> None:
        """Close it."""


class NotHedgedError(Exception):
    """Error raised by a rival that may not be called; the race is over with that of the first."""


T = TypeVar("T", bound=Closable)
# Called once, when the first content of an answer has arrived.
OnFirstContent = Callable[[], None]


class Hedge(Generic[T]):
    """A race of a call and, once it is silent for too long, a rival.

    Args:
        timers: timers of the running event loop.
        after_s: seconds of silence after which the rival is started.
        start: starts the rival, which calls the given function at its first content; returns
            None if there is no model to call. It may raise `NotHedgedError` before it calls one.
        on_first_content: called once, at the first content of either.

    Attributes:
        decided: whether the rival's outcome was that of the race.
    """

    def __init__(
        self,
        timers: TimerWheel,
        after_s: float,
        start: Callable[[OnFirstContent], Coroutine[Any, Any, T] | None],
        on_first_content: OnFirstContent | None,
    ) -> None:
        self.decided = False
        self._timers = timers
        self._after_s = after_s
        self._start = start
        self._on_first_content = on_first_content
        # The task of the race, while the first call may be interrupted.
        self._task: asyncio.Task[Any] | None = None
        self._is_interrupted = False
        self._timer: TimerHandle | None = None
        self._rival: asyncio.Task[T] | None = None
        self._dropped: asyncio.Task[T] | None = None

    async def race(
        self, first: Callable[[OnFirstContent], Awaitable[T]], ends: Callable[[Exception], bool]
    ) -> T:
        """Return the result of the call whose first content arrives first.

        If `first` fails while the rival is running, the rival's outcome is that of the race, unless
        `ends` returns True for the failure. The loser is cancelled and has ended when this returns.
        """
        loop = self._timers.loop
        task = self._task = asyncio.current_task(loop)
        assert task is not None, "it runs in a task"
        cancelling = task.cancelling()
        failure: Exception | None = None
        self._timer = TimerHandle(self._timers, loop.time() + self._after_s, self._start_rival)
        try:
            try:
                return await first(self._first_has_content)
            except asyncio.CancelledError:
                # A cancellation from outside at the same moment must not be lost.
                if not self._is_interrupted or task.cancelling() > cancelling + 1:
                    raise
            except Exception as error:
                if self._rival is None or ends(error):
                    raise
                failure = error
            finally:
                self._task = None
                self._timer.cancel()
                if self._is_interrupted:
                    task.uncancel()
            self.decided = True
            rival = self._rival
            assert rival is not None
            try:
                result = await rival
            except NotHedgedError:
                assert failure is not None, "only a rival that speaks interrupts the first call"
                self.decided = False
                raise failure from None
            self._rival = None
            return result
        finally:
            # Nearly always there is no rival.
            if self._rival is not None:
                self._drop()
            if self._dropped is not None:
                await self._clear(self._dropped)

    def _start_rival(self) -> None:
        coroutine = self._start(self._rival_has_content)
        if coroutine is not None:
            self._rival = self._timers.loop.create_task(coroutine)

    def _first_has_content(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._rival is not None:
            self._drop()
        self._has_content()

    def _rival_has_content(self) -> None:
        # Like `asyncio.timeout`: cancel the task, which then calls `uncancel`.
        if self._task is not None and not self._is_interrupted:
            self._is_interrupted = True
            self._task.cancel()
        self._has_content()

    def _has_content(self) -> None:
        """Call the callback at the first content of the race."""
        on_first_content, self._on_first_content = self._on_first_content, None
        if on_first_content is not None:
            on_first_content()

    def _drop(self) -> None:
        """Cancel the rival."""
        if self._rival is not None:
            self._rival.cancel()
            self._dropped, self._rival = self._rival, None

    async def _clear(self, dropped: asyncio.Task[T]) -> None:
        """Wait until a cancelled rival has ended, and close its result if it has one."""
        await asyncio.wait([dropped])
        if not dropped.cancelled() and dropped.exception() is None:
            await dropped.result().close()
