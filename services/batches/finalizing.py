"""Ends batches: completes their results, and writes the files with them."""

from collections.abc import AsyncIterator, Sequence

from gateway.batches.v1.batches_pb2 import BatchError, BatchResult
from gateway.errors.v1 import errors_pb2
from services.batches.execution import BatchFormats
from services.batches.file_calls import BatchFiles
from services.batches.records import BatchLimits, State, pack_errors, worker_died
from services.batches.repository import BatchRepository
from services.batches.tables import batch_requests, batch_results
from services.batches.task_queue import TaskQueue
from services.batches.tasks import Task
from services.common.clock import Clock
from services.common.errors import GatewayError

# Failures that pass by themselves. Others, such as an exceeded quota, are for the owner of a batch,
# whose results are kept meanwhile.
_TRANSIENT = (
    errors_pb2.REASON_UNAVAILABLE,
    errors_pb2.REASON_STORAGE_UNAVAILABLE,
    errors_pb2.REASON_STORAGE_FULL,
)


class Finalizing:
    """Ends batches.

    Args:
        queue: the tasks.
        repository: the results.
        files: the files of users.
        formats: renders the lines.
        clock: the clock.
    """

    def __init__(
        self,
        queue: TaskQueue,
        repository: BatchRepository,
        files: BatchFiles,
        formats: BatchFormats,
        clock: Clock,
    ) -> None:
        self._queue = queue
        self._repository = repository
        self._files = files
        self._formats = formats
        self._clock = clock

    @property
    def _limits(self) -> BatchLimits:
        return self._repository.limits

    async def run(self, task: Task) -> float:
        """End a batch; return 0. It may be run again, after a worker that has died.

        Raises:
            TaskLostError: another worker holds the task.
            GatewayError: unavailable, storage_unavailable or storage_full; or what its owner may
                change, such as storage_quota_exceeded, which the batch shows meanwhile. The task
                can be run again.
        """
        if not task.has_ended:
            was_incomplete = await self._queue.complete_results(task) or task.has_unbegun
            if task.input_file_id and task.is_given_up:
                await self._fail(task, worker_died("output_file_id"))
                return 0.0
            if task.input_file_id:
                await self._write_files(task)
            state = State.COMPLETED
            if task.is_cancelled:
                state = State.CANCELLED
            elif was_incomplete:
                state = State.EXPIRED
            await self._end(task, state)
        # Its results are in the files, or stay where they are.
        await self._queue.delete_rows(task, batch_requests)
        if task.input_file_id:
            await self._queue.delete_rows(task, batch_results)
        await self._queue.remove(task)
        return 0.0

    async def fail(self, task: Task, error: GatewayError) -> bool:
        """Show why the results of a batch cannot be written; return whether that is for its owner.

        The batch fails if it has not changed at the end of its time.

        Raises:
            TaskLostError: another worker holds the task.
            GatewayError: unavailable.
        """
        if error.reason in _TRANSIENT:
            return False
        shown = BatchError(code=error.code, message=error.message, param="output_file_id")
        if self._clock.now_ms() < task.expires_at_ms:
            await self._queue.set_batch(task, {"errors": pack_errors([shown])})
            return True
        await self._fail(task, shown)
        return True

    async def _fail(self, task: Task, error: BatchError) -> None:
        """End a batch whose results cannot be written; they are kept as long as the batch.

        Raises:
            TaskLostError: another worker holds the task.
            GatewayError: unavailable.
        """
        await self._end(task, State.FAILED, pack_errors([error]))
        await self._queue.remove(task)

    async def _write_files(self, task: Task) -> None:
        """Write the files that have not been written.

        Raises:
            TaskLostError: another worker holds the task.
            GatewayError: as `BatchFiles.write`.
        """
        files = (
            ("output", "output_file_id", task.output_file_id, True),
            ("error", "error_file_id", task.error_file_id, False),
        )
        for kind, column, file_id, succeeded in files:
            if file_id:
                continue
            name = f"{task.batch_id}_{kind}.jsonl"
            await self._files.delete_named(task.key_id, name, task.created_at_ms // 1000)
            results = self._repository.stored_results(task.batch_id, succeeded=succeeded)
            written = await self._files.write(
                task.key_id, name, self._rendered(task, results), task.output_ttl_s
            )
            if written:
                await self._queue.set_batch(task, {column: written})

    async def _rendered(
        self, task: Task, pages: AsyncIterator[Sequence[BatchResult]]
    ) -> AsyncIterator[bytes]:
        async for page in pages:
            yield b"".join([self._formats.render(result) for result in page])

    async def _end(self, task: Task, state: State, errors: bytes = b"[]") -> None:
        now_ms = self._clock.now_ms()
        ended = {"state": state, "errors": errors, "ended_at_ms": now_ms}
        await self._queue.set_batch(
            task, ended | {"deleted_at_ms": now_ms + int(self._limits.retention_s * 1000)}
        )
