"""Runs the requests of one task."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from typing import NamedTuple

from gateway.batches.v1.batches_pb2 import BatchOutcome
from services.batches.execution import BatchCall, Execute, Execution
from services.batches.records import RequestResult, TaskLostError
from services.batches.result_writer import ResultWriter
from services.batches.retries import is_limited, retry_delay_s
from services.batches.slots import RequestSlots
from services.batches.task_queue import TaskQueue
from services.batches.tasks import ClaimedRequest, Task
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.process.byte_budget import ByteBudget, Charge
from services.common.storage.leased_rows import wait_briefly

# Workers that run the same request alone and die, after which it is not run any more.
MAX_ALONE = 2
# The shortest time in which requests are run alone, so that it has those whose results a worker had
# not stored when it died.
_ALONE_S = 20.0

log = logging.getLogger(__name__)


class TaskRun:
    """The run of a task.

    Args:
        task: the task.
        queue: reads its large requests, and releases it.
        writer: stores its results.
        execute: executes a request.
        key_of: returns the key of its calls.
        slots: limits the requests of the process, and of each user.
        alone: held while a request is run that a worker may have died of.
        budget: limits the bytes that the process holds.
        clock: the clock.
    """

    def __init__(
        self,
        task: Task,
        queue: TaskQueue,
        writer: ResultWriter,
        execute: Execute,
        key_of: Callable[[str], str],
        slots: RequestSlots,
        alone: asyncio.Lock,
        budget: ByteBudget,
        clock: Clock,
    ) -> None:
        self.task = task
        self._budget = budget
        self._queue = queue
        self._writer = writer
        self._execute = execute
        self._key_of = key_of
        self._slots = slots
        self._alone = alone
        self._clock = clock
        self._is_stopped = asyncio.Event()
        self._is_leaving = False
        self._is_lost = False
        self._requests: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Begin no more requests, as the batch has been cancelled."""
        self._is_stopped.set()

    def leave(self) -> None:
        """Begin no more requests, and leave them to another worker."""
        self._is_leaving = True
        self._is_stopped.set()

    def interrupt(self) -> None:
        """Stop the requests that have begun, too; another worker runs them again."""
        self.leave()
        for request in self._requests:
            request.cancel()

    def mark_lost(self) -> None:
        """Stop everything, as another worker holds the task."""
        self._is_lost = True
        self._writer.discard(self.task.id)
        self.interrupt()

    async def run(self) -> None:
        """Run the requests that have no result, until results are stored; never raises."""
        self._writer.open(self.task, self.mark_lost)
        if self._is_over():
            self.stop()
        self._slots.add_waiting(self.task.user_id, len(self.task.requests))
        for request in await self._run_suspects():
            self._start(self._run_request(request))
        if self._requests:
            await asyncio.wait(set(self._requests))
        await self._writer.end(self.task.id, is_done=not self._is_leaving)
        if self._is_leaving and not self._is_lost:
            await self._release()

    def _start(self, run: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        # Without the variables of the task that has claimed them.
        running = asyncio.create_task(run, context=Context())
        self._requests.add(running)
        running.add_done_callback(self._requests.discard)
        return running

    async def _run_suspects(self) -> Sequence[ClaimedRequest]:
        """Run the requests that the last worker may have died of; return the others.

        They are those that it began first: as many as a worker runs of a user at a time, and those
        whose results had not been stored. Each is run alone, and its result stored before the next
        begins, so that the first without a result is the one that a worker has died of.
        """
        task, requests = self.task, self.task.requests
        if task.claims <= 1:
            return requests
        began = self._clock.monotonic()
        for place, request in enumerate(requests):
            if self._is_over():
                return requests[place:]
            begun = 0 if place else task.begun_alone
            if task.is_given_up or begun >= MAX_ALONE:
                self._slots.add_waiting(task.user_id, -1)
                self._writer.add(task.id, _abandoned(request))
            elif place < self._slots.max_of_user or self._clock.monotonic() - began < _ALONE_S:
                await asyncio.wait([self._start(self._run_request(request, begun))])
            else:
                return requests[place:]
            await self._writer.flush(task.id)
        return ()

    async def _release(self) -> None:
        """Release the task, which another worker will run."""
        try:
            await self._queue.release(self.task)
        except GatewayError as error:
            log.warning("a task could not be released", extra={"error": error.message})

    async def _run_request(self, request: ClaimedRequest, begun_alone: int | None = None) -> None:
        """Run a request until it has a result, which is kept, or no more requests are begun.

        Args:
            request: the request.
            begun_alone: how often it has been run alone, if it is to be run alone again.
        """
        user_id = self.task.user_id
        is_waiting = True
        failures = 0
        try:
            while True:
                async with self._slots.slot(user_id):
                    # Requests that wait for nothing, such as invalid ones, leave the event loop to
                    # others: no more than have slots run in one of its iterations.
                    await asyncio.sleep(0)
                    if self._is_over():
                        return
                    if is_waiting:
                        self._slots.add_waiting(user_id, -1)
                        is_waiting = False
                    if begun_alone is None:
                        execution = await self._executed(request)
                    else:
                        execution = await self._executed_alone(request, begun_alone)
                status, retry_after_s = execution.status, execution.retry_after_s
                failures += not is_limited(status)
                delay_s = retry_delay_s(status, retry_after_s, failures)
                if delay_s is None:
                    break
                self._slots.add_waiting(user_id, 1)
                is_waiting = True
                await wait_briefly(self._is_stopped, delay_s)
        finally:
            if is_waiting:
                self._slots.add_waiting(user_id, -1)
        self._writer.add(self.task.id, result_of(request, execution))

    async def _executed_alone(self, request: ClaimedRequest, begun: int) -> Execution:
        """Execute a request once, with no other that a worker may have died of."""
        async with self._alone:
            try:
                await self._queue.mark_alone(self.task, begun + 1)
                execution = await self._executed(request)
                if retry_delay_s(execution.status, None, 1) is not None:
                    # It may wait for long, which no worker dies of.
                    await self._queue.mark_alone(self.task, begun)
                return execution
            except GatewayError as error:
                return _Failure(error.http_status, error.retry_after_s)
            except TaskLostError:
                self.mark_lost()
                return _Failure(500)

    async def _executed(self, request: ClaimedRequest) -> Execution:
        """Execute a request once; a failure of the gateway is a response, too."""
        try:
            if request.body is not None:
                return await self._execute(self._call(request.body))
            with Charge(self._budget, self.task.user_id) as charge:
                await charge.acquire(request.size)
                body = await self._queue.body(self.task, request.number)
                return await self._execute(self._call(body))
        except GatewayError as error:
            return _Failure(error.http_status, error.retry_after_s)
        except Exception:
            log.exception("a request of a batch could not be executed")
            return _Failure(500)

    def _is_over(self) -> bool:
        """Return whether no more requests are begun."""
        task = self.task
        return (
            task.is_cancelled
            or self._is_stopped.is_set()
            or self._clock.now_ms() >= task.expires_at_ms
        )

    def _call(self, body: bytes) -> BatchCall:
        task = self.task
        return BatchCall(
            batch_id=task.batch_id,
            dialect=task.dialect,
            endpoint=task.endpoint,
            headers=task.headers,
            key=self._key_of(task.key_id),
            body=body,
        )


class _Failure(NamedTuple):
    """The response to a request that could not be executed."""

    status: int
    retry_after_s: float | None = None
    body: bytes = b""
    request_id: str = ""
    tokens: tuple[int, int, int] = (0, 0, 0)


def _abandoned(request: ClaimedRequest) -> RequestResult:
    outcome = BatchOutcome.BATCH_OUTCOME_ABANDONED
    return RequestResult(request.number, request.custom_id, outcome, 0, "", b"")


def result_of(request: ClaimedRequest, execution: Execution) -> RequestResult:
    """Return the result of a request, to be stored."""
    is_success = execution.status < 300
    outcomes = (BatchOutcome.BATCH_OUTCOME_ERRORED, BatchOutcome.BATCH_OUTCOME_SUCCEEDED)
    return RequestResult(
        number=request.number,
        custom_id=request.custom_id,
        outcome=outcomes[is_success],
        status=execution.status,
        request_id=execution.request_id,
        body=execution.body,
        tokens=execution.tokens,
    )
