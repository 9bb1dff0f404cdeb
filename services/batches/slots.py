"""The requests of batches that one process runs at a time: in all, and of each user."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager


class RequestSlots:
    """Limits the requests that run, and says of which users more requests are needed.

    Args:
        max_running: maximum number of requests that run at a time.
        max_of_user: maximum number of them of one user.
        on_needed: called when more requests may be needed.

    Attributes:
        max_of_user: maximum number of requests of a user that run at a time.
    """

    def __init__(self, max_running: int, max_of_user: int, on_needed: Callable[[], object]) -> None:
        self.max_of_user = min(max_of_user, max_running)
        self._max_running = max_running
        self._all = asyncio.Semaphore(max_running)
        self._of_users: dict[str, asyncio.Semaphore] = {}
        self._running: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._on_needed = on_needed

    @property
    def users(self) -> Collection[str]:
        """The users who have requests that run or wait."""
        return self._running.keys() | self._waiting.keys()

    @property
    def supplied_users(self) -> Collection[str]:
        """The users of whom no more requests are needed now."""
        return {user_id for user_id in self.users if self._is_supplied(user_id)}

    @property
    def has_room(self) -> bool:
        """Whether requests of another user could be run now."""
        used = sum(
            min(self.max_of_user, self._running[user_id] + self._waiting[user_id])
            for user_id in self.users
        )
        return used < self._max_running

    def add_waiting(self, user_id: str, count: int) -> None:
        """Count requests of a user that wait; a negative count if they do not wait any more."""
        _add(self._waiting, user_id, count)
        self._forget(user_id)

    @asynccontextmanager
    async def slot(self, user_id: str) -> AsyncIterator[None]:
        """Wait until a request of a user may run, and count it; context manager."""
        of_user = self._of_users.setdefault(user_id, asyncio.Semaphore(self.max_of_user))
        async with of_user, self._all:
            _add(self._running, user_id, 1)
            try:
                yield
            finally:
                _add(self._running, user_id, -1)
                self._forget(user_id)

    def _is_supplied(self, user_id: str) -> bool:
        return self._waiting[user_id] > 0 or self._running[user_id] >= self.max_of_user

    def _forget(self, user_id: str) -> None:
        """Forget a user without requests, and say that more are needed of one who has few."""
        if user_id not in self._waiting:
            if user_id not in self._running:
                self._of_users.pop(user_id, None)
            self._on_needed()


def _add(counter: "Counter[str]", user_id: str, count: int) -> None:
    counter[user_id] += count
    if not counter[user_id]:
        del counter[user_id]
