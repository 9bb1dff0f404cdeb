"""How many tasks of requests a process claims together."""

# The seconds that the claimed requests should take, and the most tasks.
_TARGET_S = 4.0
_MAX_TASKS = 8


class ClaimPace:
    """The number of tasks to claim together: as many as have been run in a few seconds.

    Tasks of slow requests are claimed one by one, so that other workers have the rest of them;
    claims of fast ones cost next to nothing.

    Attributes:
        users: the users whose tasks were claimed last.
    """

    def __init__(self) -> None:
        self.users: frozenset[str] = frozenset()
        self._claimed = 0
        self._claimed_at = 0.0

    def tasks(self, now_s: float) -> int:
        """Return the number of tasks to claim at a time, in seconds of a monotonic clock."""
        elapsed_s = max(now_s - self._claimed_at, 1e-3)
        count = min(2 * self._claimed, int(self._claimed * _TARGET_S / elapsed_s), _MAX_TASKS)
        return max(1, count)

    def add(self, user_ids: list[str], now_s: float) -> None:
        """Note whose tasks have been claimed together."""
        self.users = frozenset(user_ids)
        self._claimed, self._claimed_at = len(user_ids), now_s
