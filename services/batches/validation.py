"""Reads the input file of a batch: checks its lines, and stores its requests."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from gateway.batches.v1.batches_pb2 import BatchError, BatchItem
from gateway.errors.v1 import errors_pb2
from services.batches.execution import BatchFormats
from services.batches.file_calls import BatchFiles
from services.batches.records import MAX_ERRORS, BatchLimits, State, pack_errors, worker_died
from services.batches.tables import batch_requests
from services.batches.task_queue import TaskQueue
from services.batches.task_rows import OWN_WORKERS
from services.batches.tasks import Task
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.process.offload import offload_if

# Requests that are stored in a transaction, and their bytes, at most.
_ROWS = 2_000
_BYTES = 4 << 20
# Lines of more bytes are parsed in a thread.
_LONG = 256 << 10
# Failures of the file store that are not for the caller.
_TRANSIENT = (errors_pb2.REASON_UNAVAILABLE, errors_pb2.REASON_STORAGE_UNAVAILABLE)


class InvalidInputError(Exception):
    """Error raised for an input file that is invalid as a whole.

    Attributes:
        error: what is invalid.
    """

    def __init__(self, code: str, message: str, param: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.error = BatchError(code=code, message=message, param=param, line=line)


class Validation:
    """Validates batches.

    Args:
        queue: the tasks.
        files: the files of users.
        formats: parses the lines.
        limits: the bounds.
        clock: the clock.
    """

    def __init__(
        self,
        queue: TaskQueue,
        files: BatchFiles,
        formats: BatchFormats,
        limits: BatchLimits,
        clock: Clock,
    ) -> None:
        self._queue = queue
        self._files = files
        self._formats = formats
        self._limits = limits
        self._clock = clock

    async def run(self, task: Task) -> float:
        """Store the requests of a batch and begin to run them, or let it fail; return 0.

        It may be run again, after a worker that has died.

        Raises:
            TaskLostError: another worker holds the task.
            GatewayError: unavailable or storage_unavailable; the task can be run again.
        """
        await self._queue.delete_rows(task, batch_requests)
        total, errors = 0, [worker_died("input_file_id")]
        try:
            if not task.is_given_up:
                total, errors = await self._read(task)
        except InvalidInputError as invalid:
            total, errors = 0, [invalid.error]
        except GatewayError as error:
            if error.reason in _TRANSIENT:
                raise
            total, errors = 0, [_of_file(error)]
        if not errors:
            await self._queue.begin(task, total)
            return 0.0
        await self._queue.delete_rows(task, batch_requests)
        now_ms = self._clock.now_ms()
        failed = {
            "state": State.FAILED,
            "errors": pack_errors(errors),
            "ended_at_ms": now_ms,
            "deleted_at_ms": now_ms + int(self._limits.retention_s * 1000),
        }
        await self._queue.set_batch(task, failed, is_done=True)
        return 0.0

    async def _read(self, task: Task) -> tuple[int, list[BatchError]]:
        """Store the requests of the input file; return their number, and the errors in it.

        Raises:
            InvalidInputError: the file has no requests, too many, or a line that is too long.
            GatewayError: the file cannot be read.
        """
        errors: list[BatchError] = []
        custom_ids: set[str] = set()
        rows: list[Mapping[str, Any]] = []
        held = 0
        number = 0
        async for line in _lines(self._files.pieces(task.key_id, task.input_file_id), self._limits):
            number += 1
            if not line or line.isspace():
                continue
            item = await self._parse(line, number, task.endpoint)
            if isinstance(item, BatchItem) and item.custom_id in custom_ids:
                item = _duplicate(item.custom_id, number)
            if isinstance(item, BatchError):
                errors.append(item)
                if len(errors) >= MAX_ERRORS:
                    break
                continue
            custom_ids.add(item.custom_id)
            if len(custom_ids) > self._limits.max_requests:
                raise InvalidInputError(
                    "too_many_tasks",
                    f"The batch has more than {self._limits.max_requests:,} requests.",
                    "input_file_id",
                )
            if errors:
                continue
            rows.append(_row(task, len(custom_ids) - 1, item))
            held += len(item.body)
            if len(rows) >= _ROWS or held >= _BYTES:
                await self._queue.store_request_rows(task, rows)
                rows, held = [], 0
        if not custom_ids and not errors:
            raise InvalidInputError("empty_file", "The input file has no requests.")
        if rows and not errors:
            await self._queue.store_request_rows(task, rows)
        return len(custom_ids), errors

    async def _parse(self, line: bytes, number: int, endpoint: str) -> BatchItem | BatchError:
        is_long = len(line) > _LONG
        return await offload_if(is_long, self._formats.parse, line, number, endpoint)


async def _lines(pieces: AsyncIterator[bytes], limits: BatchLimits) -> AsyncIterator[bytes]:
    """Yield the lines of a file, without their line feeds.

    Raises:
        InvalidInputError: the file or a line is too long.
    """
    parts: list[bytes] = []
    size = line_size = number = 0
    async for piece in pieces:
        size += len(piece)
        if size > limits.max_bytes:
            raise InvalidInputError(
                "file_too_large",
                f"The input file has more than {limits.max_bytes:,} bytes.",
                "input_file_id",
            )
        first, *others = piece.split(b"\n")
        parts.append(first)
        line_size += len(first)
        for each in others:
            number += 1
            yield b"".join(parts)
            parts, line_size = [each], len(each)
        if line_size > limits.max_body_bytes:
            raise InvalidInputError(
                "line_too_large",
                f"A line has at most {limits.max_body_bytes:,} bytes.",
                line=number + 1,
            )
    yield b"".join(parts)


def _row(task: Task, number: int, item: BatchItem) -> Mapping[str, Any]:
    return {
        "batch_id": task.batch_id,
        "number": number,
        "custom_id": item.custom_id,
        "body": item.body,
        "provider_batch_id": OWN_WORKERS,
    }


def _duplicate(custom_id: str, line: int) -> BatchError:
    return BatchError(
        code="duplicate_custom_id",
        message=f"The custom_id {custom_id!r} is that of an earlier line, too.",
        param="custom_id",
        line=line,
    )


def _of_file(error: GatewayError) -> BatchError:
    return BatchError(code=error.code, message=error.message, param="input_file_id")
