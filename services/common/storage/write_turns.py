"""Fair order of the write transactions of a process: round robin between users.

A SQLite file has one writer at a time. A user who sends hundreds of writes at once delays his own,
and each write of another user by one of his at most.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count


class WriteTurns:
    """A lock that is fair between owners; those of one owner are served first in, first out.

    What the gateway writes by itself, of no owner (""), is served first: it is bounded, and others
    wait for it, as for the renewal of leases.
    """

    def __init__(self) -> None:
        self._is_held = False
        # Who waits: the round in which each is served, the order of arrival, and the future that
        # begins the turn.
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()
        # The round that is being served, and the last one in which each owner has a place.
        self._round = 0
        self._last_rounds: dict[str, int] = {}

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it within the block."""
        if self._is_held:
            await self._wait(owner)
        self._is_held = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, owner: str) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self._next_round(owner), next(self._arrivals), mine))
        try:
            await mine
        except asyncio.CancelledError:
            # The end of another turn passes over a cancelled future.
            if not mine.cancelled():
                self._pass_on()  # the turn began at the same moment
            raise

    def _next_round(self, owner: str) -> int:
        """Return the round in which the next transaction of an owner is served."""
        if not owner:
            return 0
        following = max(self._round, self._last_rounds.get(owner, 0)) + 1
        self._last_rounds[owner] = following
        return following

    def _pass_on(self) -> None:
        """End the turn, and begin that of who comes first."""
        while self._waiting:
            served, _, first = heapq.heappop(self._waiting)
            self._round = max(self._round, served)
            if not first.done():
                first.set_result(None)
                return
        self._is_held = False
        self._round = 0
        self._last_rounds.clear()
