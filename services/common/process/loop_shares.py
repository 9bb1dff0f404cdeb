"""Fair shares of the event loop: the steps of users who use much of it wait for those of others.

An iteration of the loop runs whatever is ready. When one user has a hundred requests in progress,
it runs a hundred of their steps, and each step of another user's request waits as long. So the time
of every step is added up by user. While users with little of it are there, the steps of the others
take turns, a step in each iteration. After steps of some length there are none for some time, if
one of a user with little ran a moment ago: his request may wait for a thread, or for a task that
waits for another, and each such wait would last as long as a step of the others. While such
requests are there, users with much have a quarter of the loop.

`install` makes every task of a loop one that is timed. A step belongs to the user whom
`user_of_task` names in the task's context: the facade sets it for a request, and the services for a
call.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar
from time import perf_counter
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from services.common.process.recent_use import RecentUse

# Whoever has used more of the loop lately (`RecentUse`) lets others go first.
_MUCH_S = 0.1
# After such steps have taken so long, there are none for some times as long, but at most so many
# seconds, if a user with little had a step since they began or so many seconds before.
_LONG_S = 0.002
_PAUSE_FACTOR = 3
_MOST_PAUSE_S = 0.2
_JUST_NOW_S = 0.02
# Others are there if one of their steps ran within so many seconds.
_PRESENT_S = 0.5

_T = TypeVar("_T")

# The user of the request that the current task serves, once he is known.
user_of_task: ContextVar[str] = ContextVar("user_of_task", default="")
# Whether the current task holds what the tasks of other users wait for: its steps do not wait.
is_waited_for: ContextVar[bool] = ContextVar("is_waited_for", default=False)


class LoopShares:
    """The shares of the users of one loop.

    Args:
        loop: the loop.
        monotonic: returns the seconds since any moment.

    Attributes:
        monotonic: see the argument.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, monotonic: Callable[[], float] = perf_counter
    ) -> None:
        self._loop = loop
        self.monotonic = monotonic
        self._use = RecentUse(monotonic)
        # The last user with little whose step ran, when it ended, and until when he counts as
        # present.
        self._other, self._other_ran_at, self._other_until = "", 0.0, 0.0
        # The steps that wait, by user; the user at the front is served next.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        # How long the steps of users with much have taken since the last pause.
        self._taken_s = 0.0

    def create_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, _T] | Generator[Any, None, _T],
        context: Context | None = None,
    ) -> asyncio.Task[_T]:
        """Create a task whose steps are timed: the loop's task factory."""
        assert asyncio.iscoroutine(coroutine), "the tasks of a loop run coroutines"
        return asyncio.Task(self._run(coroutine), loop=loop, context=context)

    async def _run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        result: _T = await _Steps(self, coroutine)
        return result

    def turn(self, user: str) -> asyncio.Future[None] | None:
        """Return what the next step of a user has to wait for, if it has to."""
        if self._use.of(user) < _MUCH_S or user == self._other:
            return None
        if self.monotonic() > self._other_until:
            return None
        turn = self._loop.create_future()
        if not self._waiting:
            self._loop.call_soon(self._begin_next)
        self._waiting.setdefault(user, deque()).append(turn)
        return turn

    def add(self, user: str, began: float) -> None:
        """Add the time of a step of a user, which has ended now."""
        now = self.monotonic()
        self._use.add(user, now - began)
        if self._use.of(user) < _MUCH_S:
            self._other, self._other_ran_at, self._other_until = user, now, now + _PRESENT_S
        else:
            self._taken_s += now - began

    def _begin_next(self) -> None:
        """Begin the next step that waits, of each user in turn, in an iteration of the loop."""
        if self._taken_s > _LONG_S:
            taken_s, self._taken_s = self._taken_s, 0.0
            if self.monotonic() - self._other_ran_at < taken_s + _JUST_NOW_S:
                pause_s = min(_PAUSE_FACTOR * taken_s, _MOST_PAUSE_S)
                self._loop.call_later(pause_s, self._begin_next)
                return
        user = next(iter(self._waiting))
        steps = self._waiting.pop(user)
        turn = steps.popleft()
        if not turn.done():
            turn.set_result(None)
        if steps:
            self._waiting[user] = steps
        if self._waiting:
            self._loop.call_soon(self._begin_next)


class _Steps:
    """Awaits a coroutine, and times its steps."""

    __slots__ = ("_coroutine", "_shares")

    def __init__(self, shares: LoopShares, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._shares = shares
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, None, Any]:
        shares, coroutine, monotonic = self._shares, self._coroutine, self._shares.monotonic
        error: BaseException | None = None
        while True:
            user = user_of_task.get()
            began = monotonic()
            try:
                if error is None:
                    awaited = coroutine.send(None)
                else:
                    thrown, error = error, None
                    try:
                        awaited = coroutine.throw(thrown)
                    finally:
                        del thrown  # its traceback refers to this frame
            except StopIteration as end:
                return end.value
            finally:
                # A user may be known by now.
                if user := user or user_of_task.get():
                    shares.add(user, began)
            try:
                yield awaited
                if user and not is_waited_for.get() and (turn := shares.turn(user)):
                    yield from turn
            except BaseException as raised:
                # Also a cancellation, and the end of the task: the coroutine gets each of them.
                error = raised
            # A future that failed has the error whose traceback refers to this frame.
            awaited = turn = None


_shares: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopShares] = WeakKeyDictionary()


def install(loop: asyncio.AbstractEventLoop) -> None:
    """Set a task factory on a loop that times the steps of its tasks by user."""
    shares = _shares[loop] = LoopShares(loop)
    loop.set_task_factory(shares.create_task)


def shares_of(loop: asyncio.AbstractEventLoop) -> LoopShares | None:
    """Return the shares of a loop, if its steps are timed."""
    return _shares.get(loop)
