"""The requests in progress: how many a user may have, and how they end when the facade stops.

1. Idle connections are closed at once, the others after their response. 2. Requests, including
those whose body is still being received, have `limits.drain_s` to finish. 3. The remaining ones
fail with 503; a started stream ends with an error event, and any other started response is cut off.
"""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

# Seconds for cancelled requests to send their last bytes, and for clients to read them.
_CANCELLED_S = 0.5
_READING_S = 0.2
_RETRY_AFTER_S = 1  # for a user who has too many requests


class Connection(Protocol):
    """The part of a connection that draining uses."""

    def force_close(self) -> None:
        """Close the connection at once, even while a request is being served."""
        ...


class RequestsInProgress:
    """The requests that a process serves.

    Args:
        most_of_user: how many of one user there may be.

    Attributes:
        is_draining: whether the facade is stopping.
    """

    def __init__(self, most_of_user: int) -> None:
        self.is_draining = False
        self._most_of_user = most_of_user
        self._of_users: dict[str, int] = {}
        self._in_progress: dict[asyncio.Task[object], object] = {}
        self._cancelled: set[asyncio.Task[object]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def enter(self, connection: object) -> "asyncio.Task[object]":
        """Register the current task as serving a request of a connection, and return the task."""
        loop = self._loop
        if loop is None:
            # Queried at the first request: it takes a system call.
            loop = self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        self._in_progress[task] = connection
        return task

    def count_for(self, user_id: str) -> None:
        """Count a request for its user, until `leave`.

        Raises:
            GatewayError: rate_limited, the user has as many requests in progress as allowed.
        """
        count = self._of_users.get(user_id, 0)
        if count >= self._most_of_user:
            raise GatewayError(
                errors_pb2.REASON_RATE_LIMITED,
                f"{count:,} of your requests are in progress, the maximum; try again when one has "
                "finished",
                retry_after_s=_RETRY_AFTER_S,
                limit="limits.max_parallel_requests_per_user",
            )
        self._of_users[user_id] = count + 1

    def leave(self, task: "asyncio.Task[object]", user_id: str) -> None:
        """Unregister a task; `user_id` is the user for whom its request was counted, or ""."""
        del self._in_progress[task]
        if not user_id:
            return
        count = self._of_users[user_id]
        if count == 1:
            del self._of_users[user_id]
        else:
            self._of_users[user_id] = count - 1

    def uncancel(self) -> bool:
        """Return whether a drain cancelled the current task, and uncancel it if so."""
        task = asyncio.current_task()
        if task is None or task not in self._cancelled:
            return False
        self._cancelled.discard(task)
        task.uncancel()
        return True

    async def finish(self, drain_s: float, connections: Iterable[Connection]) -> None:
        """Wait for the requests in progress to finish; cancel the rest."""
        self.is_draining = True
        # Let data already read from sockets become requests.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        busy = set(self._in_progress.values())
        for connection in connections:
            if connection not in busy:
                connection.force_close()
        if await self._ended(drain_s):
            return
        self._cancelled |= self._in_progress.keys()
        for task in self._cancelled:
            task.cancel()
        await self._ended(_CANCELLED_S)
        # Closing a connection while its client is sending would discard the response.
        await asyncio.sleep(_READING_S)

    async def _ended(self, within_s: float) -> bool:
        """Wait until no request is in progress; return False on timeout."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within_s
        while self._in_progress and (left := end - loop.time()) > 0:
            await asyncio.wait(set(self._in_progress), timeout=left)
        return not self._in_progress


def stopping() -> GatewayError:
    """Return the error for requests interrupted by shutdown: 503."""
    return GatewayError(
        errors_pb2.REASON_UNAVAILABLE,
        "the gateway is stopping; try again",
        limit="limits.drain_s",
    )
