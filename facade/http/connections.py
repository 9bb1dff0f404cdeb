"""All connections of a process: how many there may be, and which ones make room.

A connection is a stranger until a request on it came with a good key. Strangers may take the
connections that are not reserved; where they have taken all, the one that has waited longest
without a request in hand makes room for the next. So whoever holds connections without a key
keeps nobody out who sends a request at once.
"""

import asyncio
import logging
import sys
from operator import itemgetter
from typing import Protocol

from facade.metrics import Metrics
from services.common.settings import Limits

log = logging.getLogger(__name__)

_MOST = 10_000
_FEWEST = 16
# Strangers that are looked at for one without a request in hand.
_LOOKED_AT = 64
# Seconds between two lines of the log about the bound.
_QUIET_S = 10.0
_SWEEP_S = 1.0
_HURRY_S = 0.1
# Calls that are cancelled in one sweep; each takes time that other callers wait for.
_CUT_AT_ONCE = 20
# After which a caller that reads nothing is stalled.
_STALLED_S = 1.0


class Entry(Protocol):
    """What is known here of a connection."""

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being served."""
        ...

    def check(self, now: float) -> float:
        """Close the connection where one of its limits of time has passed.

        Returns:
            The seconds for which its caller has read nothing of what waits to be read.
        """
        ...

    def cut(self, limit: str) -> None:
        """End the connection whose caller does not read, because of a limit."""
        ...

    def make_room(self) -> None:
        """Close the connection for another one."""
        ...


class Connections:
    """Admits connections, and looks after their limits of time once a second."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits = limits
        self.metrics = metrics
        self.most = limits.max_connections or default_most()
        self._most_strangers = max(1, int(self.most * (1 - limits.reserved_connections)))
        self._loop = asyncio.get_running_loop()
        # In the order in which they came.
        self._strangers: dict[Entry, None] = {}
        self._known: set[Entry] = set()
        self._sweep_every_s = min(_SWEEP_S, limits.head_timeout_s / 4, limits.stalled_reader_s / 4)
        self._sweeping: asyncio.TimerHandle | None = None
        self._hurries = False
        self._waiting = 0
        self._told_at = -_QUIET_S
        self._untold = 0

    def __len__(self) -> int:
        return len(self._strangers) + len(self._known)

    def admit(self, connection: Entry) -> bool:
        """Count a new connection; return False where there is no room for it."""
        if len(self._strangers) >= self._most_strangers or len(self) >= self.most:
            self._count("limits.max_connections")
            oldest = self._oldest_stranger()
            if oldest is None:
                return False
            del self._strangers[oldest]
            oldest.make_room()
        self._strangers[connection] = None
        self.metrics.connections.inc()
        if self._sweeping is None:
            self._schedule()
        return True

    def authenticated(self, connection: Entry) -> None:
        """Note that a request on a connection came with a good key."""
        if connection in self._strangers:
            del self._strangers[connection]
            self._known.add(connection)

    def forget(self, connection: Entry) -> None:
        """Drop a connection that has ended."""
        self._strangers.pop(connection, None)
        self._known.discard(connection)
        self.metrics.connections.dec()

    def stopped(self) -> None:
        """Note that a caller reads more slowly than it is answered."""
        self._waiting += 1
        if self._waiting > self.limits.max_stalled_readers and not self._hurries:
            self._hurries = True
            self._schedule()

    def resumed(self) -> None:
        """Note that a caller has caught up, or has gone."""
        self._waiting -= 1

    def _schedule(self) -> None:
        """Sweep again after a while, sooner where many callers do not read."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        delay = _HURRY_S if self._hurries else self._sweep_every_s
        self._sweeping = self._loop.call_later(min(delay, self._sweep_every_s), self._sweep)

    def _oldest_stranger(self) -> Entry | None:
        """Return the stranger to close: the oldest one without a request, else the oldest."""
        oldest: Entry | None = None
        for number, stranger in enumerate(self._strangers):
            if stranger.is_idle:
                return stranger
            oldest = oldest or stranger
            if number == _LOOKED_AT:
                break
        return oldest

    def _sweep(self) -> None:
        now = self._loop.time()
        stalled = [
            (seconds, connection)
            for connection in [*self._strangers, *self._known]
            if (seconds := connection.check(now)) >= _STALLED_S
        ]
        if (spare := len(stalled) - self.limits.max_stalled_readers) > 0:
            stalled.sort(key=itemgetter(0), reverse=True)
            for _, connection in stalled[: min(spare, _CUT_AT_ONCE)]:
                connection.cut("limits.max_stalled_readers")
        self._hurries = self._waiting > self.limits.max_stalled_readers
        self._sweeping = None
        if len(self):
            self._schedule()

    def _count(self, limit: str) -> None:
        self.metrics.limits_reached.labels(limit).inc()
        self._untold += 1
        now = self._loop.time()
        if now - self._told_at < _QUIET_S:
            return
        log.warning(
            "as many connections as limits.max_connections and limits.reserved_connections allow",
            extra={
                "connections": len(self),
                "without_key": len(self._strangers),
                "max_connections": self.most,
                "refused_or_closed": self._untold,
            },
        )
        self._told_at, self._untold = now, 0


def default_most() -> int:
    """Return how many connections the process's file descriptors are enough for.

    Each may need as many again, for a provider and for files.
    """
    if sys.platform == "win32":
        return _MOST
    import resource

    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return _MOST
    return max(_FEWEST, min(descriptors * 2 // 5, _MOST))
