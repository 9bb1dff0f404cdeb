"""Fair scheduling of conversions between owners: round robin, first in first out per owner."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.common.errors import unavailable

_LIMIT = "limits.max_waiting_conversions"


class Turns:
    """A semaphore that is fair between owners."""

    def __init__(self, most: int, max_waiting: int) -> None:
        """Create a semaphore with `most` slots; at most `max_waiting` tasks may wait."""
        self._free = most
        self._max_waiting = max_waiting
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
            self._pass_on()

    async def _take(self, owner: str) -> None:
        if self._free:
            self._free -= 1
            return
        if self._count >= self._max_waiting:
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
                self._pass_on()  # the slot was assigned at the same moment
            raise

    def _forget(self, owner: str, mine: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(owner)
        if queue is not None and mine in queue:
            queue.remove(mine)
            self._count -= 1
            if not queue:
                del self._waiting[owner]

    def _pass_on(self) -> None:
        """Pass a slot to the next owner, or free it."""
        while self._waiting:
            owner, queue = self._waiting.popitem(last=False)
            first = queue.popleft()
            self._count -= 1
            if queue:
                self._waiting[owner] = queue  # to the end of the queue
            if not first.cancelled():
                first.set_result(None)
                return
        self._free += 1
