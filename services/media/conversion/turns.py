"""Fair scheduling of conversions between owners: round robin, first in first out per owner.

No owner holds the last slot, so that a conversion of another owner always starts at once or waits
for one that is not the same owner's; with a single slot, owners take turns. No owner takes more
than half of the places in which conversions wait.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.common.errors import unavailable

_LIMIT = "limits.max_waiting_conversions"


class Turns:
    """A semaphore that is fair between owners."""

    def __init__(self, max_turns: int, max_waiting: int) -> None:
        """Create a semaphore with `max_turns` slots; at most `max_waiting` tasks may wait."""
        self._free = max_turns
        self._max_held = max(1, max_turns - 1)
        self._held: dict[str, int] = {}
        self._max_waiting = max_waiting
        self._max_own_waiting = max(1, max_waiting // 2)
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._count = 0

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it within the block.

        Raises:
            GatewayError: unavailable, if too many are already waiting.
        """
        await self._take(owner)
        try:
            yield
        finally:
            self._release(owner)

    async def _take(self, owner: str) -> None:
        # A slot is free only while every waiting owner holds as many as it may.
        if self._free and self._may_hold_more(owner):
            self._hold(owner)
            return
        own = len(self._waiting.get(owner, ()))
        if self._count >= self._max_waiting or own >= self._max_own_waiting:
            raise unavailable(
                "too many conversions are waiting; try again", retry_after_s=5, limit=_LIMIT
            )
        mine = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(mine)
        self._count += 1
        try:
            await mine
        except asyncio.CancelledError:
            if mine.cancelled():
                self._forget(owner, mine)
            else:
                self._release(owner)  # the slot was assigned at the same moment
            raise

    def _forget(self, owner: str, mine: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(owner)
        if queue is not None and mine in queue:
            queue.remove(mine)
            self._count -= 1
            if not queue:
                del self._waiting[owner]

    def _may_hold_more(self, owner: str) -> bool:
        return self._held.get(owner, 0) < self._max_held

    def _hold(self, owner: str) -> None:
        self._free -= 1
        self._held[owner] = self._held.get(owner, 0) + 1

    def _release(self, owner: str) -> None:
        """Free the slot of an owner, and pass it on to the next one that may hold it."""
        self._free += 1
        self._held[owner] -= 1
        if not self._held[owner]:
            del self._held[owner]
        while (following := next(filter(self._may_hold_more, self._waiting), None)) is not None:
            queue = self._waiting.pop(following)
            first = queue.popleft()
            self._count -= 1
            if queue:
                self._waiting[following] = queue  # to the end of the queue
            if not first.cancelled():
                self._hold(following)
                first.set_result(None)
                return
