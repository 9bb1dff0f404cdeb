"""Tasks that outlive their requests, and limits on background answers per user."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

_T = TypeVar("_T")
# Seconds that stopped tasks have to store their results.
_STOPPING_S = 0.5


class BackgroundTasks:
    """The tasks of one process that outlive their requests.

    Args:
        max_running: maximum number of background answers generated for one user at a time.
        max_queued: maximum number of further answers of a user that wait for their generation.
        count: called with 1 when an answer is admitted, and with -1 when it is released.
    """

    def __init__(self, max_running: int, max_queued: int, count: Callable[[int], object]) -> None:
        self._count = count
        self._max_running = max_running
        self._max_queued = max_queued
        self._tasks: dict[asyncio.Task[Any], Callable[[], object]] = {}
        self._admitted: Counter[str] = Counter()
        self._places: dict[str, asyncio.Semaphore] = {}

    def spawn(
        self, work: Coroutine[Any, Any, _T], on_stop: Callable[[], object] | None = None
    ) -> "asyncio.Task[_T]":
        """Start a task.

        Args:
            work: the coroutine of the task.
            on_stop: called when the process stops and the task has no time left; the task must
                then end soon. By default the task is cancelled.
        """
        task = asyncio.create_task(work)
        self._tasks[task] = on_stop or task.cancel
        task.add_done_callback(self._tasks.pop)
        return task

    def admit(self, user_id: str) -> None:
        """Count a background answer of a user, until `release`.

        Raises:
            GatewayError: rate_limited, the user has as many running and queued answers as allowed.
        """
        most = self._max_running + self._max_queued
        if self._admitted[user_id] >= most:
            raise GatewayError(
                errors_pb2.REASON_RATE_LIMITED,
                f"background: {most} of your responses are already queued or in "
                "progress, the maximum; try again when one has finished",
                param="background",
                limit="limits.max_queued_responses",
            )
        self._admitted[user_id] += 1
        self._count(1)

    def release(self, user_id: str) -> None:
        """Stop counting an answer that was admitted."""
        self._admitted[user_id] -= 1
        self._count(-1)
        if not self._admitted[user_id]:
            del self._admitted[user_id]
            self._places.pop(user_id, None)

    @asynccontextmanager
    async def place(self, user_id: str) -> AsyncIterator[None]:
        """Wait until another answer of the user may be generated; first come, first served."""
        places = self._places.get(user_id)
        if places is None:
            places = self._places[user_id] = asyncio.Semaphore(self._max_running)
        async with places:
            yield

    async def finish(self, drain_s: float) -> None:
        """Wait for the tasks for at most `drain_s` seconds, then stop the rest."""
        await self._ended(drain_s)
        for stop in list(self._tasks.values()):
            stop()
        await self._ended(_STOPPING_S)
        for task in list(self._tasks):
            task.cancel()

    async def _ended(self, within_s: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + within_s
        while self._tasks and (left := end - loop.time()) > 0:
            await asyncio.wait(set(self._tasks), timeout=left)
