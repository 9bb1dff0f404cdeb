"""Batches in OpenAI's format: bodies, objects, and the lines of their files.

Source: OpenAI's API reference, "Batch".
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from facade.dialects.queries import parse_cursor, parse_limit
from facade.dialects.responses.types import Metadata
from facade.dialects.validation import read
from gateway.batches.v1 import batches_pb2
from gateway.batches.v1.batches_pb2 import (
    Batch,
    BatchError,
    BatchItem,
    BatchResult,
    CreateBatchRequest,
    ListBatchesRequest,
    ListBatchesResponse,
)
from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, invalid
from services.common.text.texts import cut

# The endpoints of requests, and those of the gateway that execute them.
ENDPOINTS: Final[Mapping[str, str]] = {
    "/v1/chat/completions": "/beta/v1/chat/completions",
    "/v1/responses": "/beta/v1/responses",
    "/v1/embeddings": "/beta/v1/embeddings",
    "/v1/completions": "/beta/v1/completions",
    "/v1/moderations": "/beta/v1/moderations",
    "/v1/images/generations": "/beta/v1/images/generations",
    "/v1/images/edits": "/beta/v1/images/edits",
}
WINDOW: Final = "24h"
_DEFAULT_LIMIT, _MAX_LIMIT = 20, 100
_MAX_CUSTOM_ID: Final = 512
_SECOND: Final = 1000
_LONGEST_ID: Final = 64

_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)
_STATUSES: Mapping[int, str] = {
    batches_pb2.BATCH_STATE_VALIDATING: "validating",
    batches_pb2.BATCH_STATE_IN_PROGRESS: "in_progress",
    batches_pb2.BATCH_STATE_FINALIZING: "finalizing",
    batches_pb2.BATCH_STATE_COMPLETED: "completed",
    batches_pb2.BATCH_STATE_FAILED: "failed",
    batches_pb2.BATCH_STATE_CANCELLED: "cancelled",
    batches_pb2.BATCH_STATE_EXPIRED: "expired",
}
# The result of a request without a response: what was not begun in OpenAI's words.
_ERRORS: Mapping[int, Mapping[str, str]] = {
    batches_pb2.BATCH_OUTCOME_CANCELLED: {
        "code": "batch_cancelled",
        "message": "This request was not executed because the batch was cancelled.",
    },
    batches_pb2.BATCH_OUTCOME_EXPIRED: {
        "code": "batch_expired",
        "message": "This request could not be executed before the completion window expired.",
    },
    batches_pb2.BATCH_OUTCOME_NOT_STORED: {
        "code": "result_not_stored",
        "message": "This request was executed once, and its result could not be stored.",
    },
    batches_pb2.BATCH_OUTCOME_ABANDONED: {
        "code": "worker_died",
        "message": "This request is not executed any more: each time the process that ran it died.",
    },
}


class OutputExpiresAfter(BaseModel):
    """The lifetime of the files of results."""

    model_config = _OPEN

    anchor: Literal["created_at"]
    seconds: Annotated[int, Field(ge=3_600, le=2_592_000)]


class BatchBody(BaseModel):
    """The body of `POST /v1/batches`."""

    model_config = _OPEN

    input_file_id: str = Field(min_length=1, max_length=64, description="A file of purpose batch.")
    endpoint: Literal[
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/embeddings",
        "/v1/completions",
        "/v1/moderations",
        "/v1/images/generations",
        "/v1/images/edits",
    ] = Field(description="The endpoint of all requests in the file.")
    completion_window: Literal["24h"]
    metadata: Metadata | None = Field(None, description="Up to 16 key-value pairs of strings.")
    output_expires_after: OutputExpiresAfter | None = Field(
        None, description="The lifetime of the files of results; 30 days by default."
    )
    native: Literal["auto", "off"] | None = Field(
        None,
        description="off: the gateway runs the requests by itself, at once and at the usual price, "
        "even if their provider has a batch service.",
    )


class _Line(msgspec.Struct):
    """A line of an input file; the body is kept as it is written."""

    custom_id: str
    method: str
    url: str
    body: msgspec.Raw


class _Body(msgspec.Struct):
    """The fields of a body that a batch cannot serve; any JSON values."""

    stream: Any = None
    background: Any = None


_BODY: TypeAdapter[BatchBody] = TypeAdapter(BatchBody)
_LINE = msgspec.json.Decoder(_Line)
_STREAMS = msgspec.json.Decoder(_Body)
_ANY = msgspec.json.Decoder(dict[str, Any])


def parse_batch(body: bytes) -> CreateBatchRequest:
    """Parse the body of a new batch.

    Raises:
        GatewayError: invalid, naming the field.
    """
    wire = read(_BODY, body)
    request = CreateBatchRequest(
        dialect=DIALECT_OPENAI,
        endpoint=wire.endpoint,
        input_file_id=wire.input_file_id,
        metadata=orjson.dumps(wire.metadata) if wire.metadata is not None else b"",
        own_workers_only=wire.native == "off",
    )
    if wire.output_expires_after is not None:
        request.output_expires_after_s = wire.output_expires_after.seconds
    return request


def parse_batch_list(query: Mapping[str, str]) -> ListBatchesRequest:
    """Parse the query of a list: `after`, and `limit` (1 to 100; 20 when absent).

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    after = parse_cursor(query, "after") or ""
    if len(after) > _LONGEST_ID:
        raise invalid("after", "after: must be the id of a batch")
    return ListBatchesRequest(
        dialect=DIALECT_OPENAI,
        page_size=parse_limit(query, default=_DEFAULT_LIMIT, largest=_MAX_LIMIT),
        after_id=after,
    )


def parse_line(line: bytes, number: int, endpoint: str) -> BatchItem | BatchError:
    """Parse a line of the input file of a batch.

    Args:
        line: the line.
        number: its number, from 1.
        endpoint: the endpoint of the batch.
    """
    try:
        parsed = _LINE.decode(line)
        switches = _STREAMS.decode(parsed.body)
    except msgspec.ValidationError as error:
        return _wrong_field(line, number, error)
    except (msgspec.DecodeError, RecursionError):
        message = "This line is not parseable as valid JSON."
        return BatchError(code="invalid_json_line", message=message, line=number)
    except UnicodeDecodeError:
        message = "This line is not UTF-8."
        return BatchError(code="invalid_json_line", message=message, line=number)
    code, param, message = "", "", ""
    if not 1 <= len(parsed.custom_id) <= _MAX_CUSTOM_ID or "\0" in parsed.custom_id:
        code, param = "invalid_custom_id", "custom_id"
        message = f"custom_id must have 1 to {_MAX_CUSTOM_ID} characters."
    elif parsed.method != "POST":
        code, param, message = "invalid_method", "method", "method must be POST."
    elif parsed.url != endpoint:
        code, param = "mismatched_endpoint", "url"
        message = f"url must be the endpoint of the batch, {endpoint}."
    elif switches.stream:
        code, param = "invalid_request", "body.stream"
        message = "stream must not be true: responses in a batch are not streamed."
    elif switches.background:
        code, param = "invalid_request", "body.background"
        message = "background must not be true: a batch runs in the background as a whole."
    if code:
        return BatchError(code=code, message=message, param=param, line=number)
    return BatchItem(custom_id=parsed.custom_id, body=bytes(parsed.body))


def render_line(result: BatchResult) -> bytes:
    """Return the line of a result in the file of results or of errors, with its line feed."""
    head: dict[str, Any] = {
        "id": f"batch_{result.request_id}" if result.request_id else None,
        "custom_id": result.custom_id,
    }
    if result.outcome in _ERRORS:
        return orjson.dumps(head | {"response": None, "error": _ERRORS[result.outcome]}) + b"\n"
    response = {
        "status_code": result.status,
        "request_id": result.request_id,
        "body": orjson.Fragment(result.body.replace(b"\n", b" ") or b"null"),
    }
    return orjson.dumps(head | {"response": response, "error": None}) + b"\n"


def render_batch(batch: Batch) -> bytes:
    """Return the JSON of a batch."""
    return orjson.dumps(_batch(batch))


def render_batch_list(page: ListBatchesResponse) -> bytes:
    """Return the JSON of a page of batches."""
    batches = page.batches
    return orjson.dumps(
        {
            "object": "list",
            "data": [_batch(batch) for batch in batches],
            "first_id": batches[0].id if batches else None,
            "last_id": batches[-1].id if batches else None,
            "has_more": page.has_more,
        }
    )


def _batch(batch: Batch) -> dict[str, Any]:
    status = _STATUSES[batch.state]
    is_cancelling = batch.cancelling_at_ms > 0 and not batch.ended_at_ms
    ended_at = _seconds(batch.ended_at_ms)
    counts, usage = batch.counts, batch.usage
    errors = [
        {
            "code": error.code,
            "message": error.message,
            "param": error.param or None,
            "line": error.line or None,
        }
        for error in batch.errors
    ]
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "errors": {"object": "list", "data": errors} if errors else None,
        "input_file_id": batch.input_file_id,
        "completion_window": WINDOW,
        "status": "cancelling" if is_cancelling else status,
        "output_file_id": batch.output_file_id or None,
        "error_file_id": batch.error_file_id or None,
        "created_at": _seconds(batch.created_at_ms),
        "in_progress_at": _seconds(batch.started_at_ms),
        "expires_at": _seconds(batch.expires_at_ms),
        "finalizing_at": _seconds(batch.finalizing_at_ms),
        "completed_at": ended_at if status == "completed" else None,
        "failed_at": ended_at if status == "failed" else None,
        "expired_at": ended_at if status == "expired" else None,
        "cancelling_at": _seconds(batch.cancelling_at_ms),
        "cancelled_at": ended_at if status == "cancelled" else None,
        "request_counts": {
            "total": counts.total,
            "completed": counts.succeeded,
            "failed": counts.errored + counts.cancelled + counts.expired,
        },
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
        "metadata": orjson.Fragment(batch.metadata) if batch.metadata else None,
    }


def _seconds(time_ms: int) -> int | None:
    return time_ms // _SECOND if time_ms else None


def _wrong_field(line: bytes, number: int, error: msgspec.ValidationError) -> BatchError:
    """Return the error of a line that is JSON, but no request."""
    try:
        fields = _ANY.decode(line)
    except (msgspec.DecodeError, RecursionError):
        message = "This line is not a JSON object."
        return BatchError(code="invalid_json_line", message=message, line=number)
    for name, kind in (("custom_id", str), ("method", str), ("url", str), ("body", dict)):
        if name not in fields:
            return BatchError(
                code="missing_required_parameter",
                message=f"{name} is required.",
                param=name,
                line=number,
            )
        if not isinstance(fields[name], kind):
            expected = "a string" if kind is str else "an object"
            message = f"{name} must be {expected}."
            return BatchError(code="invalid_type", message=message, param=name, line=number)
    return BatchError(code="invalid_request", message=str(error), line=number)


def batch_error(error: GatewayError, batch_id: str) -> GatewayError:
    """Convert an error to one about the batch that a request names, in OpenAI's words."""
    if error.reason != errors_pb2.REASON_NOT_FOUND:
        return error
    name = cut(batch_id, _LONGEST_ID)
    return GatewayError(error.reason, f"No batch found with id '{name}'.", param="batch_id")


def list_error(error: GatewayError) -> GatewayError:
    """Convert an error to one about the query of a list."""
    if error.param != "after_id":
        return error
    return invalid("after", "after: must be the id of one of your batches")
