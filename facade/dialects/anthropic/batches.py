"""Batches of messages in Anthropic's format: bodies, objects, and the lines of results.

Source: Anthropic's API reference, "Message Batches".
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
import orjson
from pydantic import BaseModel, ConfigDict, Field

from facade.dialects.queries import parse_cursor, parse_limit
from gateway.batches.v1 import batches_pb2
from gateway.batches.v1.batches_pb2 import (
    Batch,
    BatchItem,
    BatchResult,
    CreateBatchRequest,
    ListBatchesRequest,
    ListBatchesResponse,
)
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, invalid
from services.common.text.texts import cut

ENDPOINT: Final = "/v1/messages"
_DEFAULT_LIMIT, _MAX_LIMIT = 20, 1_000
_LONGEST_ID: Final = 64
_OBJECT: Final = ord("{")
# The results of requests that were not begun.
_UNBEGUN: Mapping[int, str] = {
    batches_pb2.BATCH_OUTCOME_CANCELLED: "canceled",
    batches_pb2.BATCH_OUTCOME_EXPIRED: "expired",
}
# What is said of the failure of a request that has no response.
_FAILURES: Mapping[int, str] = {
    batches_pb2.BATCH_OUTCOME_ERRORED: "Internal error.",
    batches_pb2.BATCH_OUTCOME_NOT_STORED: "The request was executed once, and its result could not "
    "be stored.",
    batches_pb2.BATCH_OUTCOME_ABANDONED: "The request is not executed any more: each time the "
    "process that ran it died.",
}


class BatchRequest(BaseModel):
    """A request of a batch, for the OpenAPI document."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    custom_id: str = Field(min_length=1, max_length=512, description="Unique in the batch.")
    params: dict[str, Any] = Field(description="The body of a request for a message.")


class MessageBatchBody(BaseModel):
    """The body of `POST /v1/messages/batches`, for the OpenAPI document."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    requests: list[BatchRequest] = Field(min_length=1)
    native: Literal["auto", "off"] | None = Field(
        None,
        description="off: the gateway runs the requests by itself, at once and at the usual price, "
        "even if their provider has a batch service.",
    )


class _Request(msgspec.Struct):
    """A request of a batch; its body is kept as it is written."""

    custom_id: str
    params: msgspec.Raw


class _BatchBody(msgspec.Struct):
    requests: list[_Request]
    native: Literal["auto", "off"] | None = None


class _Params(msgspec.Struct):
    """The field of a body that a batch cannot serve; any JSON value."""

    stream: Any = None


# What msgspec says of a field, and what is said of it here.
_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")
_EXPECTED: Final = re.compile(r"Expected `([^`]+)`")
_KINDS: Final = {"str": "a string", "array": "an array", "object": "an object"}
_BODY = msgspec.json.Decoder(_BatchBody)
_PARAMS = msgspec.json.Decoder(_Params)


def parse_batch(held: list[bytes]) -> CreateBatchRequest:
    """Parse the body of a new batch, which is removed from the list.

    Raises:
        GatewayError: invalid, naming the field.
    """
    try:
        body = _BODY.decode(held.pop())
    except msgspec.ValidationError as error:
        raise _wrong_field(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise invalid("body", "body: must be JSON") from None
    requests, is_own = body.requests, body.native == "off"
    del body
    if not requests:
        raise invalid("requests", "requests: must have at least one request")
    batch = CreateBatchRequest(
        dialect=DIALECT_ANTHROPIC, endpoint=ENDPOINT, own_workers_only=is_own
    )
    for place, request in enumerate(requests):
        params = bytes(request.params)
        path = f"requests[{place}].params"
        if params[0] != _OBJECT:
            raise invalid(path, f"{path}: must be an object")
        if _PARAMS.decode(params).stream:
            raise invalid(
                f"{path}.stream", f"{path}.stream: must not be true: batches are not streamed"
            )
        batch.items.append(BatchItem(custom_id=request.custom_id, body=params))
    return batch


def parse_batch_list(query: Mapping[str, str]) -> ListBatchesRequest:
    """Parse the query of a list: `limit` (1 to 1000; 20 when absent), a cursor.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    after, before = parse_cursor(query, "after_id"), parse_cursor(query, "before_id")
    if after is not None and before is not None:
        raise invalid("before_id", "before_id: must not be given together with after_id")
    for name, cursor in (("after_id", after), ("before_id", before)):
        if cursor is not None and len(cursor) > _LONGEST_ID:
            raise invalid(name, f"{name}: must be the id of a batch")
    return ListBatchesRequest(
        dialect=DIALECT_ANTHROPIC,
        page_size=parse_limit(query, default=_DEFAULT_LIMIT, largest=_MAX_LIMIT),
        after_id=after or "",
        before_id=before or "",
    )


def render_batch(batch: Batch, address: str) -> bytes:
    """Return the JSON of a batch; `address` is that of the gateway, for the URL of its results."""
    return orjson.dumps(_batch(batch, address))


def render_batch_list(page: ListBatchesResponse, address: str) -> bytes:
    """Return the JSON of a page of batches; see `render_batch`."""
    batches = page.batches
    return orjson.dumps(
        {
            "data": [_batch(batch, address) for batch in batches],
            "has_more": page.has_more,
            "first_id": batches[0].id if batches else None,
            "last_id": batches[-1].id if batches else None,
        }
    )


def render_deleted_batch(batch_id: str) -> bytes:
    """Return the JSON that confirms the deletion of a batch."""
    return orjson.dumps({"id": batch_id, "type": "message_batch_deleted"})


def render_result(result: BatchResult) -> bytes:
    """Return the line of a result, with its line feed."""
    outcome: dict[str, Any] = {"type": _UNBEGUN.get(result.outcome, "errored")}
    if result.outcome == batches_pb2.BATCH_OUTCOME_SUCCEEDED:
        outcome = {"type": "succeeded", "message": _json(result.body)}
    elif result.outcome in _FAILURES:
        error = {"type": "api_error", "message": _FAILURES[result.outcome]}
        failure = {"type": "error", "error": error, "request_id": None}
        outcome["error"] = _json(result.body) if result.body else failure
    return orjson.dumps({"custom_id": result.custom_id, "result": outcome}) + b"\n"


def batch_error(error: GatewayError, batch_id: str) -> GatewayError:
    """Convert an error to one about the batch that a request names."""
    if error.reason == errors_pb2.REASON_NOT_FOUND:
        name = cut(batch_id, _LONGEST_ID)
        return GatewayError(error.reason, f"batch_id: no such batch '{name}'", param="batch_id")
    if error.param == "id":
        message = error.message.replace("id:", "batch_id:", 1)
        return GatewayError(error.reason, message, param="batch_id")
    return error


def create_error(error: GatewayError) -> GatewayError:
    """Convert an error about the items of a batch to one about the requests of a body."""
    if not error.param.startswith("items"):
        return error
    param = error.param.replace("items", "requests", 1)
    message = error.message.replace("items", "requests", 1)
    return GatewayError(error.reason, message, param=param, limit=error.limit)


def _batch(batch: Batch, address: str) -> dict[str, Any]:
    status = "in_progress"
    if batch.ended_at_ms:
        status = "ended"
    elif batch.cancelling_at_ms:
        status = "canceling"
    path = f"{address}/v1/messages/batches/{batch.id}/results"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": status,
        "request_counts": _counts(batch),
        "created_at": _time(batch.created_at_ms),
        "expires_at": _time(batch.expires_at_ms),
        "ended_at": _time(batch.ended_at_ms),
        "cancel_initiated_at": _time(batch.cancelling_at_ms),
        "archived_at": None,
        "results_url": path if batch.ended_at_ms else None,
    }


def _counts(batch: Batch) -> Mapping[str, int]:
    """Return the counts of a batch; as at Anthropic, all are of `processing` until it has ended."""
    counts = batch.counts
    has_ended = batch.ended_at_ms > 0
    return {
        "processing": 0 if has_ended else counts.total,
        "succeeded": counts.succeeded if has_ended else 0,
        "errored": counts.errored if has_ended else 0,
        "canceled": counts.cancelled if has_ended else 0,
        "expired": counts.expired if has_ended else 0,
    }


def _time(time_ms: int) -> str | None:
    if not time_ms:
        return None
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def _json(body: bytes) -> orjson.Fragment:
    # A line has no line feeds, which JSON has between its tokens alone.
    return orjson.Fragment(body.replace(b"\n", b" ") or b"null")


def _wrong_field(error: msgspec.ValidationError) -> GatewayError:
    """Return the error of a body that is JSON, but no batch."""
    message, _, place = str(error).partition(" - at `$")
    path = place.strip("`.")
    if missing := _MISSING.match(message):
        path = f"{path}.{missing[1]}".lstrip(".")
        return invalid(path, f"{path}: is required")
    expected = _EXPECTED.match(message)
    kind = _KINDS.get(expected[1] if expected else "", "of another type")
    return invalid(path, f"{path or 'the body'}: must be {kind}")
