"""The worker of batches in one process: claims tasks, and runs them.

Without tasks it asks the database every few seconds whether there are any; a batch that is created
in this process wakes it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import Context

from services.batches.claim_pace import ClaimPace
from services.batches.execution import Execute
from services.batches.finalizing import Finalizing
from services.batches.metrics import BatchMetrics
from services.batches.records import TaskKind, TaskLostError
from services.batches.result_writer import ResultWriter
from services.batches.slots import RequestSlots
from services.batches.task_queue import TaskQueue
from services.batches.task_run import TaskRun
from services.batches.tasks import Task, TaskFilter
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.process.byte_budget import ByteBudget
from services.common.storage.leased_rows import LeaseRenewer, wait_briefly

# Seconds between two looks into the queue.
_POLL_S = 2.0
# Tasks that run no requests, at a time, by group.
_GROUPS = (
    (TaskKind.VALIDATE, TaskKind.FINALIZE),
    (TaskKind.SUBMIT, TaskKind.COLLECT),
)
_OTHERS = 2
_RUN = (TaskKind.RUN,)
# Seconds until a task that has failed is run again, and if its owner has to do something first.
_AGAIN_S = 5.0
_OWNER_AGAIN_S = 60.0

# Runs a task; returns the seconds after which it is run again, 0 if it is done. Raises
# TaskLostError, and GatewayError if the task can be run again.
RunTask = Callable[[Task], Awaitable[float]]

log = logging.getLogger(__name__)


class BatchRunner:
    """Runs tasks until it is stopped.

    Args:
        queue: the tasks.
        others: the tasks that run no requests, by kind.
        finalizing: ends batches.
        execute: executes a request.
        key_of: returns the key of the calls for requests, by the id of the user's key.
        budget: limits the bytes that the process holds.
        max_running: maximum number of requests that run at a time.
        max_of_user: maximum number of them of one user.
        poll_every_s: maximum seconds between two looks into the queue.
        clock: the clock.
        metrics: the metrics of this process.
    """

    def __init__(
        self,
        queue: TaskQueue,
        others: Mapping[TaskKind, RunTask],
        finalizing: Finalizing,
        execute: Execute,
        key_of: Callable[[str], str],
        budget: ByteBudget,
        max_running: int,
        max_of_user: int,
        poll_every_s: float,
        clock: Clock,
        metrics: BatchMetrics,
    ) -> None:
        self._queue = queue
        self._run_kind = others
        self._finalizing = finalizing
        self._execute = execute
        self._key_of = key_of
        self._budget = budget
        self._clock = clock
        self._poll_every_s = min(_POLL_S, poll_every_s)
        self._metrics = metrics
        self._woken = asyncio.Event()
        self._slots = RequestSlots(max_running, max_of_user, self.wake)
        self._renewer = LeaseRenewer(self._renew, queue.lease_s)
        self._writer = ResultWriter(queue.store)
        self._pace = ClaimPace()
        self._alone = asyncio.Lock()
        self._runs: dict[str, TaskRun] = {}
        self._others: tuple[set[asyncio.Task[None]], ...] = tuple(set() for _ in _GROUPS)
        self._running: set[asyncio.Task[None]] = set()
        # Without the variables of what starts it.
        self._loop = asyncio.create_task(self._work(), context=Context())

    def wake(self) -> None:
        """Look into the queue at once."""
        self._woken.set()

    def cancel(self, batch_id: str) -> None:
        """Begin no more requests of a batch, which has been cancelled."""
        for run in self._runs.values():
            if run.task.batch_id == batch_id:
                run.stop()

    async def leave(self) -> None:
        """Claim no more tasks, and begin no more requests."""
        self._loop.cancel()
        await asyncio.gather(self._loop, return_exceptions=True)
        for run in list(self._runs.values()):
            run.leave()

    async def stop(self, within_s: float) -> None:
        """Wait for the requests in progress for at most `within_s`, and release all tasks."""
        await self.leave()
        if self._running:
            await asyncio.wait(set(self._running), timeout=within_s)
        for run in list(self._runs.values()):
            run.interrupt()
        for other in [other for group in self._others for other in group]:
            other.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._renewer.close()

    async def _work(self) -> None:
        while True:
            self._woken.clear()
            try:
                while await self._claim():
                    pass
            except GatewayError as error:
                log.warning("no tasks of batches could be claimed", extra={"error": error.message})
            except Exception:
                log.exception("no tasks of batches could be claimed")
            await wait_briefly(self._woken, self._poll_every_s)

    async def _claim(self) -> bool:
        """Claim tasks and start them; return whether there were some."""
        filters = self._filters()
        if not filters:
            return False
        free = await self._queue.free(filters)
        first = next((each for each, is_free in zip(filters, free, strict=True) if is_free), None)
        if first is None:
            return False
        tasks = await self._queue.claim(first)
        for task in tasks:
            self._begin(task)
        if tasks and first.kinds is _RUN:
            self._pace.add([task.user_id for task in tasks], self._clock.monotonic())
            # They count as waiting before others are claimed.
            await asyncio.sleep(0)
        return bool(tasks)

    def _filters(self) -> Sequence[TaskFilter]:
        """Return which tasks could be run now, the most urgent first."""
        filters = [
            TaskFilter(kinds)
            for kinds, running in zip(_GROUPS, self._others, strict=True)
            if len(running) < _OTHERS
        ]
        if not self._slots.has_room:
            return filters
        # First those of users who have none here, so that nobody waits for the batches of another.
        supplied = self._slots.supplied_users
        users = self._pace.users.union(self._slots.users)
        filters.append(TaskFilter(_RUN, users))
        if len(supplied) < len(users):
            filters.append(TaskFilter(_RUN, supplied, self._pace.tasks(self._clock.monotonic())))
        return filters

    def _begin(self, task: Task) -> None:
        """Start to run a claimed task."""
        if task.kind is not TaskKind.RUN:
            group = next(
                running
                for kinds, running in zip(_GROUPS, self._others, strict=True)
                if task.kind in kinds
            )
            self._start(task, self._run_other(task), group)
            return
        run = TaskRun(
            task,
            self._queue,
            self._writer,
            self._execute,
            self._key_of,
            self._slots,
            self._alone,
            self._budget,
            self._clock,
        )
        self._runs[task.id] = run
        self._renewer.add(task.id, run.mark_lost)
        self._start(task, self._run_requests(run), set())

    def _start(
        self, task: Task, running: Awaitable[None], group: "set[asyncio.Task[None]]"
    ) -> None:
        started = asyncio.ensure_future(running)
        self._metrics.tasks.labels(task.kind).inc()
        for each in (group, self._running):
            each.add(started)
            started.add_done_callback(each.discard)
        started.add_done_callback(lambda _: self.wake())

    async def _run_requests(self, run: TaskRun) -> None:
        try:
            await run.run()
        finally:
            self._renewer.discard(run.task.id)
            del self._runs[run.task.id]

    async def _run_other(self, task: Task) -> None:
        current = asyncio.current_task()
        assert current is not None
        if task.is_given_up:
            log.error(
                "a task of a batch was given up, as its workers died",
                extra={"batch": task.batch_id, "kind": task.kind},
            )
        self._renewer.add(task.id, current.cancel)
        delay_s = 0.0
        try:
            delay_s = await self._run_kind[task.kind](task)
            return
        except TaskLostError:
            return
        except GatewayError as error:
            log.warning(
                "a task of a batch failed, and is run again",
                extra={"batch": task.batch_id, "kind": task.kind, "error": error.message},
            )
            delay_s = await self._delay_after(task, error)
        except Exception:
            log.exception("a task of a batch failed, and is run again")
            delay_s = _OWNER_AGAIN_S
        finally:
            self._renewer.discard(task.id)
            await asyncio.shield(asyncio.ensure_future(self._release(task, delay_s)))

    async def _delay_after(self, task: Task, error: GatewayError) -> float:
        """Return the seconds until a task is run again, after the batch shows its error."""
        if task.kind is not TaskKind.FINALIZE:
            return _AGAIN_S
        try:
            is_for_owner = await self._finalizing.fail(task, error)
        except (GatewayError, TaskLostError):
            return _AGAIN_S
        return _OWNER_AGAIN_S if is_for_owner else _AGAIN_S

    async def _release(self, task: Task, delay_s: float) -> None:
        """Release a task, unless it is done or another worker holds it."""
        try:
            await self._queue.release(task, delay_s)
        except GatewayError as error:
            log.warning("a task could not be released", extra={"error": error.message})

    async def _renew(self, task_ids: Collection[str]) -> Collection[str]:
        held = await self._queue.renew(task_ids)
        batch_ids = {run.task.batch_id for run in self._runs.values()}
        if batch_ids:
            for batch_id in await self._queue.cancelled(batch_ids):
                self.cancel(batch_id)
        return held
