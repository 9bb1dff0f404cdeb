"""Fair order of the transactions of a process on a SQLite file: round robin between users.

The file has one writer at a time, and few readers are as fast as many. A user who sends hundreds of
transactions at once delays his own, and each one of another user by one of his at most.

Transactions that wait run in the thread of a connection one after the other: were each begun by the
event loop, the file would be idle while the loop computes.
"""

import asyncio
import heapq
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from contextvars import Context, copy_context
from functools import partial
from itertools import count
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

_T = TypeVar("_T")

# Calls a function with a connection, in the thread of the connection, and returns its result.
RunInThread = Callable[[Callable[[Connection], Any]], Coroutine[Any, Any, Any]]


class _Transaction(Generic[_T]):
    """A transaction that waits for its turn, or runs.

    Attributes:
        result: ends with the result of the transaction, or with its error.
    """

    def __init__(self, transact: Callable[[Connection], _T]) -> None:
        self.result: Future[_T] = Future()
        self._transact = transact
        self._context = copy_context()
        self._end: Callable[[], None] | None = None

    def run(self, connection: Connection) -> bool:
        """Run it, unless its caller has left; return whether the connection is still usable."""
        if not self.result.set_running_or_notify_cancel():
            return True
        try:
            result = self._context.run(self._transact, connection)
        except BaseException as error:
            self._end = partial(self.result.set_exception, error)
            return False
        self._end = partial(self.result.set_result, result)
        return True

    def end(self) -> None:
        """End the result of a transaction that has run."""
        if self._end is not None:
            self._end()

    def fail(self, error: BaseException) -> None:
        """End the result by an error, unless the transaction has run or its caller has left."""
        if self._end is not None:
            self._end()
        elif self.result.set_running_or_notify_cancel():
            self.result.set_exception(error)


# Who waits: a block, whose turn begins when the future is done, or a transaction.
_Waiting = asyncio.Future[None] | _Transaction[Any]


class ConnectionTurns:
    """A semaphore that is fair between owners; those of one owner are served first in, first out.

    What the gateway does by itself, for no owner (""), is served first: it is bounded, and others
    wait for it, as for the renewal of leases.
    """

    def __init__(self, places: int, run_in_thread: RunInThread) -> None:
        """Create a semaphore.

        Args:
            places: turns that are held at a time.
            run_in_thread: runs transactions with a connection that it opens and closes.
        """
        self._places = self._free = places
        self._run_in_thread = run_in_thread
        # The threads of the transactions take the following ones by themselves.
        self._mutex = threading.Lock()
        # Who waits, by the round in which each is served and the order of arrival.
        self._waiting: list[tuple[int, int, _Waiting]] = []
        self._arrivals = count()
        # The round that is being served, and the last one in which each owner has a place.
        self._round = 0
        self._last_rounds: dict[str, int] = {}
        self._serving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it within the block."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(owner)
        try:
            yield
        finally:
            self._pass_on()

    async def transact(self, owner: str, transact: Callable[[Connection], _T]) -> _T:
        """Wait for a turn, and call `transact` with a connection, in the connection's thread.

        Once it runs, it is not cancelled: whoever is cancelled here waits for its end.
        """
        if self._free:
            self._free -= 1
            try:
                result: _T = await self._run_in_thread(transact)
                return result
            finally:
                self._pass_on()
        transaction = _Transaction(transact)
        self._enqueue(owner, transaction)
        return await _end_of(transaction.result)

    async def _wait(self, owner: str) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._enqueue(owner, mine)
        try:
            await mine
        except asyncio.CancelledError:
            # The end of another turn passes over a cancelled future.
            if not mine.cancelled():
                self._pass_on()  # the turn began at the same moment
            raise

    def _enqueue(self, owner: str, waiting: _Waiting) -> None:
        with self._mutex:
            heapq.heappush(self._waiting, (self._next_round(owner), next(self._arrivals), waiting))

    def _next_round(self, owner: str) -> int:
        """Return the round in which the next transaction of an owner is served."""
        if not owner:
            return 0
        following = max(self._round, self._last_rounds.get(owner, 0)) + 1
        self._last_rounds[owner] = following
        return following

    def _next(self) -> _Waiting | None:
        """Return who is served next."""
        with self._mutex:
            return self._pop() if self._waiting else None

    def _next_transaction(self) -> _Transaction[Any] | None:
        """Return who is served next, if it is a transaction."""
        with self._mutex:
            if self._waiting and isinstance(self._waiting[0][2], _Transaction):
                following = self._pop()
                assert isinstance(following, _Transaction)
                return following
            return None

    def _pop(self) -> _Waiting:
        served, _, following = heapq.heappop(self._waiting)
        self._round = max(self._round, served)
        return following

    def _pass_on(self) -> None:
        """End the turn, and begin that of who comes first."""
        while following := self._next():
            if isinstance(following, _Transaction):
                # Nothing of a caller's context may leak into the transactions of others.
                task = asyncio.get_running_loop().create_task(
                    self._serve(following), context=Context()
                )
                self._serving.add(task)
                task.add_done_callback(self._serving.discard)
                return
            if not following.done():
                following.set_result(None)
                return
        self._free += 1
        if self._free == self._places:
            self._round = 0
            self._last_rounds.clear()

    async def _serve(self, first: _Transaction[Any]) -> None:
        """Serve a transaction and those that follow, and pass the turn on.

        The result of the last one ends once the connection is closed: when nobody waits for a
        result any more, no connection is open.
        """
        running = first

        def run_all(connection: Connection) -> None:
            """Run transactions in their order until one fails."""
            nonlocal running
            while running.run(connection) and (following := self._next_transaction()):
                running.end()
                running = following

        try:
            await self._run_in_thread(run_all)
        except BaseException as error:
            # It did not begin, as where the database cannot be opened.
            running.fail(error)
        else:
            running.end()
        finally:
            self._pass_on()


async def _end_of(result: Future[_T]) -> _T:
    """Return a result; if cancelled, wait for the end of what has begun already."""
    try:
        return await asyncio.wrap_future(result)
    except asyncio.CancelledError:
        if not result.cancel():
            ended, loop = asyncio.Event(), asyncio.get_running_loop()
            result.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
            while not ended.is_set():
                with suppress(asyncio.CancelledError):
                    await ended.wait()
        raise
