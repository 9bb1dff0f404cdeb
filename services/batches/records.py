"""Batches, their states and their limits, and the errors raised about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import orjson
from sqlalchemy import Row

from gateway.batches.v1.batches_pb2 import (
    Batch,
    BatchCounts,
    BatchError,
    BatchOutcome,
    BatchState,
    BatchUsage,
)
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

MAX_CUSTOM_ID = 512
# Errors that a batch keeps of an invalid input file.
MAX_ERRORS = 100


class State(StrEnum):
    """The state of a batch; see `BatchState`. One that is being created is not shown."""

    CREATING = "creating"
    VALIDATING = "validating"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class TaskKind(StrEnum):
    """The work of a task."""

    VALIDATE = "validate"
    # Creates batches at providers, of the requests that these can run.
    SUBMIT = "submit"
    # Waits for the end of a batch at a provider.
    COLLECT = "collect"
    RUN = "run"
    FINALIZE = "finalize"


_PROTO_STATES: Mapping[State, BatchState.ValueType] = {
    state: BatchState.Value(f"BATCH_STATE_{state.name}")
    for state in State
    if state is not State.CREATING
}


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The bounds of batches.

    Attributes:
        max_requests: maximum number of requests of a batch.
        max_bytes: maximum bytes of an input file, or of the bodies of a batch.
        max_body_bytes: maximum bytes of the body of a request.
        max_open: maximum number of batches of a user that have not ended.
        window_s: seconds in which the requests of a batch are begun.
        retention_s: seconds that a batch and its results are stored after its end.
        lease_s: seconds that a worker holds a task without renewing it.
    """

    max_requests: int
    max_bytes: int
    max_body_bytes: int
    max_open: int
    window_s: float
    retention_s: float
    lease_s: float


@dataclass(frozen=True, slots=True)
class RequestResult:
    """The result of a request, to be stored.

    Attributes:
        number: the number of the request.
        custom_id: the id that the caller gave it.
        outcome: what became of it.
        status: HTTP status of the response.
        request_id: id of the request.
        body: the JSON body of the response.
        tokens: input, output and cached tokens.
    """

    number: int
    custom_id: str
    outcome: BatchOutcome.ValueType
    status: int
    request_id: str
    body: bytes
    tokens: tuple[int, int, int] = (0, 0, 0)


def batch_of(row: Row[*tuple[object, ...]]) -> Batch:
    """Return the batch of a row of the table."""
    return Batch(
        id=row.id,
        dialect=row.dialect,
        endpoint=row.endpoint,
        state=_PROTO_STATES[State(row.state)],
        input_file_id=row.input_file_id,
        output_file_id=row.output_file_id,
        error_file_id=row.error_file_id,
        errors=[BatchError(**error) for error in orjson.loads(row.errors)],
        counts=BatchCounts(
            total=row.total,
            succeeded=row.succeeded,
            errored=row.errored,
            cancelled=row.cancelled,
            expired=row.expired,
        ),
        created_at_ms=row.created_at_ms,
        expires_at_ms=row.expires_at_ms,
        started_at_ms=row.started_at_ms,
        finalizing_at_ms=row.finalizing_at_ms,
        ended_at_ms=row.ended_at_ms,
        cancelling_at_ms=row.cancelling_at_ms,
        metadata=row.metadata,
        usage=BatchUsage(
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            cached_tokens=row.cached_tokens,
        ),
        deleted_at_ms=row.deleted_at_ms,
    )


def pack_errors(errors: Sequence[BatchError]) -> bytes:
    """Return errors as they are stored."""
    return orjson.dumps(
        [
            {
                "code": error.code,
                "message": error.message,
                "param": error.param,
                "line": error.line,
            }
            for error in errors[:MAX_ERRORS]
        ]
    )


def pack_headers(headers: Mapping[str, str]) -> bytes:
    """Return headers as they are stored."""
    return orjson.dumps(dict(headers))


def worker_died(param: str) -> BatchError:
    """Return the error of a batch whose workers died of reading or writing the file `param`."""
    message = "This batch was given up, because the workers that ran it died."
    return BatchError(code="worker_died", message=message, param=param)


def not_found() -> GatewayError:
    """Return the error for a batch that the caller does not have."""
    return GatewayError(errors_pb2.REASON_NOT_FOUND, "id: no such batch", param="id")


def not_ended(message: str) -> GatewayError:
    """Return the error of a call that needs a batch that has ended."""
    return GatewayError(errors_pb2.REASON_CONFLICT, message, param="id")


def too_many_open(max_open: int) -> GatewayError:
    """Return the error for a user with too many batches that have not ended."""
    return GatewayError(
        errors_pb2.REASON_RATE_LIMITED,
        f"{max_open} of your batches have not ended, the maximum; try again when one has ended, or "
        "cancel one",
        retry_after_s=60,
        limit="batches.max_open_per_user",
    )


def too_many_requests(max_requests: int) -> GatewayError:
    """Return the error for a batch with too many requests."""
    return GatewayError(
        errors_pb2.REASON_TOO_LARGE,
        f"items: a batch has at most {max_requests:,} requests",
        param="items",
        limit="batches.max_requests",
    )


class TaskLostError(Exception):
    """Error raised when another worker holds a task, or its batch has been deleted."""
