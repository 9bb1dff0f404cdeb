"""Waits for the end of batches at providers, and stores the answers as results."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from services.batches.execution import BatchCall, Execute
from services.batches.provider_calls import GONE, BatchServices
from services.batches.provider_queue import ProviderBatch, ProviderQueue
from services.batches.records import RequestResult, TaskLostError
from services.batches.refused_results import store_or_replace
from services.batches.retries import is_limited
from services.batches.task_queue import TaskQueue
from services.batches.task_run import result_of
from services.batches.tasks import ClaimedRequest, Task, TaskResults
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.messages.deferred_call import DeferredCall
from services.common.process.byte_budget import ByteBudget, Charge

# Answers that are read at once, and their bytes.
_AT_ONCE = 50
_BYTES_AT_ONCE = 4 << 20
_PARALLEL = 8
# Attempts to read an answer while its user has too many requests in progress.
_ATTEMPTS = 5
_AGAIN_S = 1.0
# The longest time after the end of a batch that its provider may take; it ends batches itself.
_LATEST_MS = 24 * 3_600_000
# The time after its creation in which a provider may not find a batch yet.
_NEW_MS = 600_000
_NOT_FOUND = 404

log = logging.getLogger(__name__)


class Collecting:
    """Waits for batches at providers.

    Args:
        tasks: the tasks.
        queue: the provider batches.
        provider: the batch services.
        execute: reads the answer to a request.
        key_of: returns the key of calls, by the id of the user's key.
        budget: limits the bytes that the process holds.
        clock: the clock.
        poll_every_s: seconds between two looks at a batch.
        sleep: waits for seconds.
    """

    def __init__(
        self,
        tasks: TaskQueue,
        queue: ProviderQueue,
        provider: BatchServices,
        execute: Execute,
        key_of: Callable[[str], str],
        budget: ByteBudget,
        clock: Clock,
        poll_every_s: float,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._tasks = tasks
        self._queue = queue
        self._provider = provider
        self._execute = execute
        self._key_of = key_of
        self._budget = budget
        self._clock = clock
        self._poll_every_s = poll_every_s
        self._sleep = sleep

    async def run(self, task: Task) -> float:
        """Store the answers of a batch that has ended; the gateway runs what has none.

        It may be run again, after a worker that has died.

        Returns:
            The seconds after which the provider is asked again; 0 if the task is done.

        Raises:
            TaskLostError: another worker holds the task.
            GatewayError: unavailable; the task can be run again.
        """
        batch = await self._queue.find(task.provider_batch_id)
        if batch is not None and not task.is_given_up:
            try:
                if not await self._has_ended(task, batch):
                    return self._poll_every_s
                await self._collect(task, batch)
            except GatewayError as error:
                if not self._gives_up(task, batch, error):
                    log.warning(
                        "a provider has not returned the results of a batch yet",
                        extra={"provider": batch.provider, "error": error.message},
                    )
                    return self._poll_every_s
        await self._queue.end(task)
        if batch is not None:
            with suppress(GatewayError):
                await self._provider.delete(batch.provider, batch.provider_id)
        return 0.0

    def _gives_up(self, task: Task, batch: ProviderBatch, error: GatewayError) -> bool:
        """Return whether the answers of a batch will never be read."""
        now_ms = self._clock.now_ms()
        is_new = now_ms < batch.created_at_ms + _NEW_MS
        is_lost = error.reason in GONE and not (is_new and error.http_status == _NOT_FOUND)
        return is_lost or now_ms > task.expires_at_ms + _LATEST_MS

    async def _has_ended(self, task: Task, batch: ProviderBatch) -> bool:
        """Return whether a batch has ended; cancel it if that of its user was cancelled."""
        if await self._provider.has_ended(batch.provider, batch.provider_id):
            return True
        if self._clock.now_ms() > task.expires_at_ms + _LATEST_MS:
            return True
        if task.is_cancelled:
            await self._provider.cancel(batch.provider, batch.provider_id)
        return False

    async def _collect(self, task: Task, batch: ProviderBatch) -> None:
        """Store the answers that have not been stored.

        Raises:
            TaskLostError: another worker holds the task.
            GatewayError: unavailable, or the provider failed.
        """
        sizes = dict(await self._queue.sizes(task))
        answers: dict[int, bytes] = {}
        held = 0
        with Charge(self._budget, task.user_id) as charge:
            async for name, answer in self._provider.answers(batch.provider, batch.provider_id):
                number = int(name[1:]) if name[1:].isdecimal() else -1
                size = sizes.pop(number, None)
                if size is None:
                    continue
                await charge.acquire(size + len(answer))
                answers[number] = answer
                held += size + len(answer)
                if len(answers) >= _AT_ONCE or held >= _BYTES_AT_ONCE:
                    await self._store(task, batch, answers)
                    answers, held = {}, 0
                    charge.release()
            if answers:
                await self._store(task, batch, answers)

    async def _store(self, task: Task, batch: ProviderBatch, answers: Mapping[int, bytes]) -> None:
        """Store answers as results.

        Raises:
            TaskLostError: another worker holds the task.
        """
        requests = await self._queue.requests(task, sorted(answers))
        results: list[RequestResult] = []
        for start in range(0, len(requests), _PARALLEL):
            some = requests[start : start + _PARALLEL]
            read = [self._read(task, batch, each, answers[each.number]) for each in some]
            results += [result for result in await asyncio.gather(*read) if result is not None]
        if results:
            held = await store_or_replace(self._tasks.store, [TaskResults(task, results)])
            if not held:
                raise TaskLostError

    async def _read(
        self, task: Task, batch: ProviderBatch, request: ClaimedRequest, answer: bytes
    ) -> RequestResult | None:
        """Return the result of a request; None if the gateway is to run it by itself."""
        assert request.body is not None, "it has been read"
        call = BatchCall(
            batch_id=task.batch_id,
            dialect=task.dialect,
            endpoint=task.endpoint,
            headers=task.headers,
            key=self._key_of(task.key_id),
            body=request.body,
            deferred=DeferredCall(answer, batch.provider, batch.model),
        )
        for _ in range(_ATTEMPTS):
            execution = await self._execute(call)
            if not is_limited(execution.status):
                break
            await self._sleep(_AGAIN_S)
        is_success = execution.status < 300
        return result_of(request, execution) if is_success else None
