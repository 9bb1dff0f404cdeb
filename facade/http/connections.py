"""All connections of a process: their limits, and eviction.

A connection is unauthenticated until a request on it had a valid API key. Unauthenticated
connections may use all connections that are not reserved; beyond that, the oldest one without a
request in progress is evicted for the next. So a client that holds connections without a key cannot
lock out clients that send requests at once.

Refused and evicted connections stay open for a moment, so that their clients can read why; few at a
time, since they hold the descriptors that the limit protects.
"""

import asyncio
import logging
import math
import sys
from collections.abc import Iterator
from operator import itemgetter
from typing import Protocol

from facade.http.refused import RefusedConnection
from facade.reports import FacadeMetrics
from services.common.settings import Limits

log = logging.getLogger(__name__)

_MAX_CONNECTIONS = 10_000
_MIN_CONNECTIONS = 16
# Maximum unauthenticated connections that are searched for an idle one.
_MAX_SEARCHED = 64
# Maximum refused connections that are open at the same time, and seconds for which they are.
_MAX_REFUSED = 64
_REFUSED_S = 2.0
# Minimum seconds between log lines about the limit.
_LOG_EVERY_S = 10.0
_SWEEP_S = 1.0
_FREQUENT_SWEEP_S = 0.1
# Maximum connections aborted per sweep, as each delays other clients.
_MAX_ABORTS = 20
# Seconds after which a client that reads nothing counts as stalled.
_STALLED_S = 1.0


class LimitedConnection(Protocol):
    """The part of a connection that its limits need."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being served."""
        ...

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task that serves the current request."""
        ...

    def force_close(self) -> None:
        """Close the connection at once, even while a request is being served."""
        ...

    def end(self) -> None:
        """Close the connection, or a socket once its requests have been answered."""
        ...

    def check(self, now: float) -> float:
        """Close the connection if one of its time limits has passed.

        Returns:
            The seconds for which the client has read none of the data that is buffered for it.
        """
        ...

    def abort(self, limit: str) -> None:
        """Abort the connection of a client that does not read, because of a limit."""
        ...

    def evict(self) -> None:
        """Close the connection to make room for another one."""
        ...


class Connections:
    """Admits connections, and checks their time limits once a second."""

    def __init__(self, limits: Limits, metrics: FacadeMetrics) -> None:
        self.limits = limits
        self.metrics = metrics
        self.max_connections = limits.max_connections or default_max_connections()
        self._max_unauthenticated = max(
            1, int(self.max_connections * (1 - limits.reserved_connections))
        )
        self._loop = asyncio.get_running_loop()
        # In order of arrival.
        self._unauthenticated: dict[LimitedConnection, None] = {}
        self._authenticated: set[LimitedConnection] = set()
        # In order of arrival, with the timers that end them; not counted as connections.
        self._refused: dict[RefusedConnection, asyncio.TimerHandle] = {}
        shortest_s = min(limits.head_timeout_s, limits.stalled_reader_s, limits.idle_connection_s)
        self._sweep_every_s = min(_SWEEP_S, shortest_s / 4)
        self._sweeping: asyncio.TimerHandle | None = None
        self._sweeps_frequently = False
        self._waiting = 0
        self._logged_at = -_LOG_EVERY_S
        self._unlogged = 0
        # When a connection last ended.
        self._ended_at = -math.inf

    def __len__(self) -> int:
        return len(self._unauthenticated) + len(self._authenticated)

    def __iter__(self) -> Iterator[LimitedConnection]:
        """Iterate over a copy, as closing a connection may remove it."""
        return iter([*self._unauthenticated, *self._authenticated])

    def were_open_within(self, seconds: float) -> bool:
        """Return whether a connection is open, or was within the last seconds."""
        return len(self) > 0 or self._loop.time() - self._ended_at < seconds

    async def close(self, within_s: float) -> None:
        """Close all connections, after their current responses if those end in time."""
        tasks = {task for connection in self if (task := connection.task) is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)
        for connection in self:
            connection.force_close()
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)

    def admit(self, connection: LimitedConnection) -> bool:
        """Register a new connection; return False if there is no room for it."""
        if (
            len(self._unauthenticated) >= self._max_unauthenticated
            or len(self) >= self.max_connections
        ):
            self._count("limits.max_connections")
            oldest = self._oldest_unauthenticated()
            if oldest is None:
                return False
            self.remove(oldest)
            oldest.evict()
        self._unauthenticated[connection] = None
        self.metrics.connections.inc()
        if self._sweeping is None:
            self._schedule()
        return True

    def authenticated(self, connection: LimitedConnection) -> None:
        """Count a connection as authenticated, after a request with a valid API key."""
        if connection in self._unauthenticated:
            del self._unauthenticated[connection]
            self._authenticated.add(connection)

    def remove(self, connection: LimitedConnection) -> None:
        """Remove a closed or evicted connection; one that has been removed is ignored."""
        if connection in self._unauthenticated:
            del self._unauthenticated[connection]
        elif connection in self._authenticated:
            self._authenticated.remove(connection)
        else:
            return
        self._ended_at = self._loop.time()
        self.metrics.connections.inc(-1)

    def keep_refused(self, refused: RefusedConnection) -> None:
        """Keep a refused connection open for a moment; if there are too many, end the oldest."""
        self._refused[refused] = self._loop.call_later(_REFUSED_S, self._end_refused, refused)
        if len(self._refused) > _MAX_REFUSED:
            self._end_refused(next(iter(self._refused)))

    def remove_refused(self, refused: RefusedConnection) -> None:
        """Remove a refused connection that its client has closed."""
        timer = self._refused.pop(refused, None)
        if timer is not None:
            timer.cancel()

    def _end_refused(self, refused: RefusedConnection) -> None:
        self.remove_refused(refused)
        refused.end()

    def writing_paused(self) -> None:
        """Record that a client reads too slowly."""
        self._waiting += 1
        if self._waiting > self.limits.max_stalled_readers and not self._sweeps_frequently:
            self._sweeps_frequently = True
            self._schedule()

    def writing_resumed(self) -> None:
        """Record that a client has caught up or left."""
        self._waiting -= 1

    def _schedule(self) -> None:
        """Schedule the next sweep, sooner if many clients do not read."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        delay = _FREQUENT_SWEEP_S if self._sweeps_frequently else self._sweep_every_s
        self._sweeping = self._loop.call_later(min(delay, self._sweep_every_s), self._sweep)

    def _oldest_unauthenticated(self) -> LimitedConnection | None:
        """Return the connection to evict: the oldest idle one, else the oldest."""
        oldest: LimitedConnection | None = None
        for number, connection in enumerate(self._unauthenticated):
            if connection.is_idle:
                return connection
            oldest = oldest or connection
            if number == _MAX_SEARCHED:
                break
        return oldest

    def _sweep(self) -> None:
        now = self._loop.time()
        stalled = [
            (seconds, connection)
            for connection in self
            if (seconds := connection.check(now)) >= _STALLED_S
        ]
        if (spare := len(stalled) - self.limits.max_stalled_readers) > 0:
            stalled.sort(key=itemgetter(0), reverse=True)
            for _, connection in stalled[: min(spare, _MAX_ABORTS)]:
                connection.abort("limits.max_stalled_readers")
        self._sweeps_frequently = self._waiting > self.limits.max_stalled_readers
        self._sweeping = None
        if len(self):
            self._schedule()

    def _count(self, limit: str) -> None:
        self.metrics.limits_reached.labels(limit).inc()
        self._unlogged += 1
        now = self._loop.time()
        if now - self._logged_at < _LOG_EVERY_S:
            return
        log.warning(
            "connection limit reached (limits.max_connections and limits.reserved_connections)",
            extra={
                "connections": len(self),
                "without_key": len(self._unauthenticated),
                "max_connections": self.max_connections,
                "refused_or_closed": self._unlogged,
            },
        )
        self._logged_at, self._unlogged = now, 0


def default_max_connections() -> int:
    """Return the number of connections that the limit of file descriptors allows.

    Each connection may need another descriptor, for a provider or a file.
    """
    if sys.platform == "win32":
        return _MAX_CONNECTIONS
    import resource

    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return max(_MIN_CONNECTIONS, min(descriptors * 2 // 5, _MAX_CONNECTIONS))
