"""Fair order of the transactions of a process on a SQLite file: who has had little comes first.

The file has one writer at a time, and few readers are as fast as many. A transaction comes as much
later than it arrived as its user has had of the file lately, and waits for his others: a user who
sends hundreds of transactions delays his own, and hardly those of others.

Transactions run in threads, one after the other: were each begun by the event loop, the file would
be idle while the loop computes.
"""

import asyncio
import heapq
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial
from itertools import count
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from services.common.process.loop_shares import is_waited_for
from services.common.process.recent_use import RecentUse

_T = TypeVar("_T")

# Calls a function with a connection that it opens and closes, in the current thread.
Connected = Callable[[Callable[[Connection], None]], None]


class _Transaction(Generic[_T]):
    """A transaction that waits for its turn, or runs.

    Attributes:
        result: ends with the result of the transaction, or with its error.
    """

    def __init__(self, transact: Callable[[Connection], _T]) -> None:
        self.result: Future[_T] = Future()
        self._transact = transact
        self._context = copy_context()

    def run(self, connected: Connected) -> None:
        """Run it in the current thread, unless its caller has left.

        The result ends once the connection is closed: when nobody waits for a result any more, no
        connection is open.
        """
        if not self.result.set_running_or_notify_cancel():
            return
        ended: list[_T] = []
        try:
            connected(
                lambda connection: ended.append(self._context.run(self._transact, connection))
            )
        except BaseException as error:
            self.result.set_exception(error)
        else:
            self.result.set_result(ended[0])


# A transaction counts as if it had come later: by so many seconds for each second that its user has
# had lately, at most so many, and by so many than his one before, if that waits too.
_DELAY_PER_S = 10.0
_MOST_DELAY_S = 2.0
_APART_S = 0.02

# Who waits: a block, whose turn begins when the future is done, or a transaction.
_Waiting = asyncio.Future[None] | _Transaction[Any]


class ConnectionTurns:
    """A semaphore that is fair between owners, and the threads of what holds it.

    What the gateway does by itself, for no owner (""), is served first: it is bounded, and others
    wait for it, as for the renewal of leases.
    """

    def __init__(
        self,
        places: int,
        connected: Connected,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a semaphore.

        Args:
            places: turns that are held at a time.
            connected: connects transactions.
            monotonic: returns the seconds since any moment.
        """
        self._places = self._free = places
        self._connected = connected
        self._monotonic = monotonic
        self._threads = ThreadPoolExecutor(places, thread_name_prefix="sqlite")
        # The threads take the transactions that wait by themselves.
        self._mutex = threading.Lock()
        # Who waits, by the moment that each counts from and the order of arrival.
        self._waiting: list[tuple[float, int, _Waiting]] = []
        self._arrivals = count()
        self._last_of: dict[str, float] = {}
        self._use = RecentUse(monotonic)

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it within the block."""
        begins: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._take_or_enqueue(owner, begins):
            await self._wait(begins)
        began = self._monotonic()
        before = is_waited_for.set(True)
        try:
            yield
        finally:
            is_waited_for.reset(before)
            self._use.add(owner, self._monotonic() - began)
            self._pass_on()

    async def transact(self, owner: str, transact: Callable[[Connection], _T]) -> _T:
        """Wait for a turn, and call `transact` with a connection, in a thread.

        Once it runs, it is not cancelled: whoever is cancelled here waits for its end.
        """
        transaction = _Transaction(partial(self._timed, owner, transact))
        if self._take_or_enqueue(owner, transaction):
            self._threads.submit(self._serve, transaction)
        return await _end_of(transaction.result)

    async def _wait(self, begins: asyncio.Future[None]) -> None:
        try:
            await begins
        except asyncio.CancelledError:
            # The end of another turn passes over a cancelled future.
            if not begins.cancelled():
                self._pass_on()  # the turn began at the same moment
            raise

    def _timed(
        self, owner: str, transact: Callable[[Connection], _T], connection: Connection
    ) -> _T:
        began = self._monotonic()
        try:
            return transact(connection)
        finally:
            self._use.add(owner, self._monotonic() - began)

    def _take_or_enqueue(self, owner: str, waiting: _Waiting) -> bool:
        """Take a free place and return True, or enqueue who waits."""
        with self._mutex:
            if self._free:
                self._free -= 1
                return True
            heapq.heappush(self._waiting, (self._moment_of(owner), next(self._arrivals), waiting))
            return False

    def _moment_of(self, owner: str) -> float:
        """Return the moment from which the next transaction of an owner counts."""
        if not owner:
            return 0.0
        moment = self._monotonic() + min(_DELAY_PER_S * self._use.of(owner), _MOST_DELAY_S)
        moment = max(moment, self._last_of.get(owner, 0.0) + _APART_S)
        self._last_of[owner] = moment
        return moment

    def _serve(self, first: _Transaction[Any]) -> None:
        """Run a transaction and those that follow, in a thread."""
        running: _Transaction[Any] | None = first
        while running is not None:
            running.run(self._connected)
            running = self._following()

    def _pass_on(self) -> None:
        """End the turn, and begin that of who comes first."""
        if (following := self._following()) is not None:
            self._threads.submit(self._serve, following)

    def _following(self) -> _Transaction[Any] | None:
        """Return the transaction that comes first; begin a block that does, or free the place."""
        with self._mutex:
            if not self._waiting:
                self._free += 1
                if self._free == self._places:
                    self._last_of.clear()
                return None
            following = heapq.heappop(self._waiting)[2]
        if isinstance(following, _Transaction):
            return following
        following.get_loop().call_soon_threadsafe(self._begin, following)
        return None

    def _begin(self, begins: asyncio.Future[None]) -> None:
        """Begin a block, unless it has been left."""
        if begins.done():
            self._pass_on()
        else:
            begins.set_result(None)


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
