"""Creates batches at providers from the requests that their own batch services can run.

The requests of one model, path and headers are a batch at a provider. All others, and those of a
provider that refuses a batch, are left to the gateway's own workers.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from services.batches.execution import BatchCall, Render
from services.batches.provider_calls import GONE, BatchServices
from services.batches.provider_queue import ProviderBatch, ProviderQueue
from services.batches.retries import retry_delay_s
from services.batches.task_queue import TaskQueue
from services.batches.tasks import ClaimedRequest, Task
from services.common.clock import Clock
from services.common.errors import GatewayError, UpstreamError
from services.common.messages.deferred_call import RenderedCall
from services.common.process.byte_budget import ByteBudget, Charge

# Requests and bytes of a batch at a provider: few enough that creating it, or reading its results,
# is soon done again. Google's have at most 20 MB.
MAX_REQUESTS = 2_000
_MAX_BYTES = 16 << 20
_LIMITED = 429
# The shortest time until more requests are submitted after a limit of their user was reached.
_LIMITED_S = 60.0

# Seconds until a provider is asked again whether it has created a batch.
_UNKNOWN_S = 60.0
_SERVER_ERRORS = 500

log = logging.getLogger(__name__)

# What the requests of a batch at a provider have in common.
_Kind = tuple[str, str, str, tuple[tuple[str, str], ...]]


class _Named(msgspec.Struct):
    model: str


_MODEL = msgspec.json.Decoder(_Named)


class Submitting:
    """Creates batches at providers.

    Args:
        tasks: the tasks.
        queue: the provider batches.
        provider: the batch services.
        render: renders the call of a provider for a request.
        key_of: returns the key of calls, by the id of the user's key.
        budget: limits the bytes that the process holds.
        clock: the clock.
        sleep: waits for seconds.
    """

    def __init__(
        self,
        tasks: TaskQueue,
        queue: ProviderQueue,
        provider: BatchServices,
        render: Render,
        key_of: Callable[[str], str],
        budget: ByteBudget,
        clock: Clock,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._tasks = tasks
        self._queue = queue
        self._provider = provider
        self._render = render
        self._key_of = key_of
        self._budget = budget
        self._clock = clock
        self._sleep = sleep

    async def run(self, task: Task) -> float:
        """Submit the requests of a task, which is removed unless a limit was reached.

        It may be run again, after a worker that has died.

        Returns:
            The seconds after which the task is to be run again; 0 if it is done.

        Raises:
            TaskLostError: another worker holds the task.
            GatewayError: unavailable; the task can be run again.
        """
        try:
            return await self._submit(task)
        except _UnknownError:
            # The other requests wait with those that may have been sent, which are not sent twice.
            return _UNKNOWN_S

    async def _submit(self, task: Task) -> float:
        """As `run`.

        Raises:
            _UnknownError: it is not known yet whether a batch has been created.
        """
        await self._recover(task)
        if task.is_given_up:
            # The workers that run requests find the one that it may be.
            return await self._complete(task)
        delay_s = 0.0
        with Charge(self._budget, task.user_id) as charge:
            submission = _Submission(charge)
            async for page in self._queue.unassigned(task):
                if await self._is_over(task):
                    return await self._complete(task)
                delay_s = await self._add(task, page, submission)
                if submission.is_full or delay_s:
                    await self._create_all(task, submission)
                if delay_s:
                    return delay_s
            if not await self._is_over(task):
                await self._create_all(task, submission)
        return await self._complete(task)

    async def _complete(self, task: Task) -> float:
        await self._queue.complete(task)
        return 0.0

    async def _is_over(self, task: Task) -> bool:
        """Return whether no more requests are begun."""
        return (
            task.is_cancelled
            or self._clock.now_ms() >= task.expires_at_ms
            or bool(await self._tasks.cancelled({task.batch_id}))
        )

    async def _recover(self, task: Task) -> None:
        """Look for the batches that may have been created: a worker died, or had no answer.

        Raises:
            _UnknownError: that is not known yet.
        """
        for batch in await self._queue.begun(task):
            provider_id = ""
            try:
                provider_id = await self._found(batch)
            except _UnknownError:
                # Nothing is sent after that time.
                if self._clock.now_ms() < task.expires_at_ms:
                    raise
            if provider_id:
                await self._queue.created(task, batch, provider_id)
            else:
                await self._queue.withdraw(task, batch)

    async def _found(self, batch: ProviderBatch) -> str:
        """Return the provider's id of a batch that may have been created; "" if it was not.

        Raises:
            _UnknownError: that is not known yet.
        """
        since_s = batch.created_at_ms / 1000 - 60
        try:
            return await self._provider.find(batch.provider, batch.id, since_s)
        except GatewayError as error:
            if error.reason in GONE:
                return ""
            log.warning(
                "it is not known yet whether a batch was created at its provider",
                extra={"provider": batch.provider, "error": error.message},
            )
            raise _UnknownError from error

    async def _add(
        self, task: Task, page: Sequence[ClaimedRequest], submission: "_Submission"
    ) -> float:
        """Render requests; return the delay of the rest if a limit was reached, else 0."""
        for request in page:
            assert request.body is not None, "pages have bodies"
            if not self._is_served(request.body):
                continue
            try:
                rendered = await self._render(self._call(task, request.body))
            except GatewayError as error:
                if error.http_status != _LIMITED:
                    raise
                return max(_LIMITED_S, error.retry_after_s or 0.0)
            if rendered is not None:
                await submission.add(request.number, rendered)
        return 0.0

    def _is_served(self, body: bytes) -> bool:
        try:
            return self._provider.serves(_MODEL.decode(body).model)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False

    async def _create_all(self, task: Task, submission: "_Submission") -> None:
        """Create a batch of the requests of each kind."""
        for kind, calls in submission.take():
            for start in range(0, len(calls), MAX_REQUESTS):
                await self._create(task, kind, calls[start : start + MAX_REQUESTS])
        submission.release()

    async def _create(self, task: Task, kind: _Kind, calls: Sequence[tuple[int, bytes]]) -> None:
        """Create a batch; its requests are left to the gateway's workers if that fails.

        Raises:
            _UnknownError: it is not known yet whether it has been created.
        """
        provider, model, path, headers = kind
        batch = await self._queue.assign(task, provider, model, [number for number, _ in calls])
        requests = [(f"r{number}", body) for number, body in calls]
        try:
            provider_id = await self._created(batch, path, headers, requests)
        except GatewayError as error:
            log.warning(
                "a provider has created no batch; its requests are run one by one",
                extra={"provider": provider, "batch": task.batch_id, "error": error.message},
            )
            await self._queue.withdraw(task, batch)
        else:
            await self._queue.created(task, batch, provider_id)

    async def _created(
        self,
        batch: ProviderBatch,
        path: str,
        headers: tuple[tuple[str, str], ...],
        requests: Sequence[tuple[str, bytes]],
    ) -> str:
        """Create a batch, with retries; return the provider's id of it.

        Raises:
            GatewayError: it has not been created.
            _UnknownError: it is not known yet whether it has been.
        """
        failures = 0
        while True:
            try:
                return await self._provider.create(
                    batch.provider, batch.id, path, headers, requests
                )
            except GatewayError as error:
                failures += 1
                status = _status(error)
                delay_s = retry_delay_s(status, error.retry_after_s, failures)
                failure = error
            if delay_s is None and status < _SERVER_ERRORS:
                raise failure
            await self._sleep(delay_s or 0.0)
            # It may have been created by a call that failed after that.
            if provider_id := await self._found(batch):
                return provider_id
            if delay_s is None:
                raise failure

    def _call(self, task: Task, body: bytes) -> BatchCall:
        return BatchCall(
            batch_id=task.batch_id,
            dialect=task.dialect,
            endpoint=task.endpoint,
            headers=task.headers,
            key=self._key_of(task.key_id),
            body=body,
        )


def _status(error: GatewayError) -> int:
    """Return the status of the provider's response to a batch that it has not created.

    A refusal for too many requests is a failure like others, after which it is tried a few times.
    """
    status = error.http_status
    if isinstance(error, UpstreamError) and error.status is not None:
        status = error.status
    return 503 if status == _LIMITED else status


class _UnknownError(Exception):
    """Error raised while it is not known whether a provider has created a batch."""


class _Submission:
    """Rendered calls that have not been submitted.

    Args:
        charge: the bytes that they hold.
    """

    def __init__(self, charge: Charge) -> None:
        self._charge = charge
        self._calls: dict[_Kind, list[tuple[int, bytes]]] = {}
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether they are to be submitted before others are added."""
        return self._count >= MAX_REQUESTS or self._charge.size >= _MAX_BYTES

    async def add(self, number: int, call: RenderedCall) -> None:
        """Add the call of a request."""
        await self._charge.acquire(len(call.body))
        kind = (call.provider, call.model, call.path, call.headers)
        self._calls.setdefault(kind, []).append((number, call.body))
        self._count += 1

    def take(self) -> Sequence[tuple[_Kind, list[tuple[int, bytes]]]]:
        """Return and remove the calls of each kind."""
        calls, self._calls, self._count = self._calls, {}, 0
        return list(calls.items())

    def release(self) -> None:
        """Release the bytes of calls that have been submitted."""
        self._charge.release()
