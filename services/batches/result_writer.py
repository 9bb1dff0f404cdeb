"""Stores the results of the tasks that a process runs: those of some seconds in one transaction."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextvars import Context

from services.batches.records import RequestResult
from services.batches.refused_results import StoreResults, store_or_replace
from services.batches.tasks import Task, TaskResults
from services.common.errors import GatewayError

# Seconds between the beginnings of two transactions, unless all tasks have ended.
_EVERY_S = 2.0
# Seconds until storing is tried again, when the database does not answer.
_AGAIN_S = 1.0
# Bytes of results that are stored at once.
_MAX_BYTES = 8 << 20

log = logging.getLogger(__name__)


class ResultWriter:
    """Stores results.

    Args:
        store: stores results of tasks in a transaction.
        sleep: waits for seconds.
    """

    def __init__(
        self,
        store: StoreResults,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._sleep = sleep
        self._tasks: dict[str, _OpenTask] = {}
        self._bytes = 0
        self._next_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None

    def open(self, task: Task, on_lost: Callable[[], object]) -> None:
        """Accept results of a task; `on_lost` is called when another worker holds it."""
        self._tasks[task.id] = _OpenTask(task, on_lost)

    def add(self, task_id: str, result: RequestResult) -> None:
        """Add a result of a task, which is stored soon; ignored once the task is closed or lost."""
        if task := self._tasks.get(task_id):
            task.results.append(result)
            task.is_stored.clear()
            self._bytes += len(result.body)
            self._schedule()

    async def end(self, task_id: str, *, is_done: bool) -> None:
        """Return when the results of a task are stored, or it is lost.

        Args:
            task_id: the task, to which no more results are added.
            is_done: whether it is removed with that.
        """
        if task := self._tasks.get(task_id):
            task.is_done = is_done
            task.has_ended = True
            self._schedule()
            await task.is_closed.wait()
        # Others may wait only for this task to end.
        self._schedule()

    async def flush(self, task_id: str) -> None:
        """Return when the results of a task that have been added are stored, or it is lost."""
        task = self._tasks.get(task_id)
        if task is not None and not task.is_stored.is_set():
            task.is_urgent = True
            self._schedule()
            await task.is_stored.wait()

    def discard(self, task_id: str) -> None:
        """Store no more results of a task, which another worker holds."""
        if task := self._tasks.pop(task_id, None):
            task.close()

    def _schedule(self) -> None:
        """Begin to store now or later, if there is anything to store."""
        waiting = [task for task in self._tasks.values() if task.has_news]
        if self._writing is not None or not waiting:
            return
        loop = asyncio.get_running_loop()
        is_urgent = (
            self._bytes >= _MAX_BYTES
            or any(task.is_urgent for task in waiting)
            or all(task.has_ended for task in self._tasks.values())
        )
        if is_urgent or loop.time() >= self._next_at:
            self._begin()
        elif self._timer is None:
            self._timer = loop.call_at(self._next_at, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is None:
            self._next_at = asyncio.get_running_loop().time() + _EVERY_S
            # Without the variables of the request whose result was the first.
            self._writing = asyncio.create_task(self._write(), context=Context())

    async def _write(self) -> None:
        """Store all results, until that succeeds; never raises."""
        parts = [task.take() for task in self._tasks.values() if task.has_news]
        self._bytes = 0
        try:
            held_ids = await self._stored(parts)
        except Exception:
            # A fault of ours: the tasks are let go, and their requests run again.
            log.exception("results are lost")
            held_ids = ()
        try:
            for part in parts:
                self._close(part, is_held=part.task.id in held_ids)
        finally:
            self._writing = None
            self._schedule()

    async def _stored(self, parts: Sequence[TaskResults]) -> Collection[str]:
        """Store results, again and again until that succeeds; return which tasks were held."""
        is_repeated = False
        while parts:
            try:
                return await store_or_replace(self._store, parts, is_repeated=is_repeated)
            except GatewayError as error:
                log.warning("results are not stored yet", extra={"error": error.message})
            is_repeated = True
            await self._sleep(_AGAIN_S)
            parts = [part for part in parts if part.task.id in self._tasks]
        return ()

    def _close(self, part: TaskResults, *, is_held: bool) -> None:
        """End what waits for results that were to be stored."""
        if is_held and not part.is_last:
            if (task := self._tasks.get(part.task.id)) and not task.has_news:
                task.is_stored.set()
            return
        if task := self._tasks.pop(part.task.id, None):
            task.close()
            if not is_held:
                task.on_lost()


class _OpenTask:
    """A task whose results are stored.

    Attributes:
        results: those that are to be stored.
        has_ended: whether no more are added.
        is_done: whether the task is then removed.
        is_urgent: whether its results are stored at once.
        is_stored: set when all of them are stored.
        is_closed: set when there is nothing left to store.
    """

    def __init__(self, task: Task, on_lost: Callable[[], object]) -> None:
        self.task = task
        self.on_lost = on_lost
        self.results: list[RequestResult] = []
        self.has_ended = False
        self.is_done = False
        self.is_urgent = False
        self.is_stored = asyncio.Event()
        self.is_stored.set()
        self.is_closed = asyncio.Event()

    @property
    def has_news(self) -> bool:
        """Whether there is anything to store."""
        return bool(self.results) or self.has_ended

    def take(self) -> TaskResults:
        """Return what is to be stored, and remove it."""
        results, self.results = self.results, []
        self.is_urgent = False
        return TaskResults(self.task, results, is_done=self.is_done, is_last=self.has_ended)

    def close(self) -> None:
        """End what waits for its results to be stored."""
        self.is_stored.set()
        self.is_closed.set()
