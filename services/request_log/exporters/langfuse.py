"""Entries as events of Langfuse's ingestion API. Pure.

https://api.reference.langfuse.com/#tag/ingestion: a batch has events with an id, a time, a type and
a body. An event that is sent again is recognized by its id.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from services.common.money import decimal_dollars
from services.common.version import VERSION
from services.request_log.exporters.base import ExportedRequest

# A request to the API has at most 3.5 MB.
_MAX_BYTES = 3_400_000
_BEGIN, _END = b'{"batch":[', b"]}"
_ERRORS = 400


def langfuse_requests(batch: Sequence[ExportedRequest]) -> Iterator[bytes]:
    """Yield the bodies of the requests that send a batch.

    Each has whole entries, and at most 3.4 MB, unless a single entry is longer.
    """
    waiting: list[bytes] = []
    size = 0
    for entry in batch:
        events = b",".join(map(orjson.dumps, _events(entry)))
        size += len(events) + 1
        if waiting and size > _MAX_BYTES:
            yield _BEGIN + b",".join(waiting) + _END
            waiting, size = [], len(events) + 1
        waiting.append(events)
    yield _BEGIN + b",".join(waiting) + _END


def rejected_entries(answer: bytes) -> Mapping[str, str]:
    """Return the ids of the entries that an answer rejects, with what it says of them."""
    try:
        errors = orjson.loads(answer)["errors"]
        return {
            str(error["id"]).rpartition("-")[0]: str(error.get("message") or error.get("error"))
            for error in errors
        }
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}  # of a server that is not Langfuse


def _events(entry: ExportedRequest) -> Iterator[Mapping[str, Any]]:
    """Yield the events of an entry: a trace, and its only observation."""
    logged = entry.logged
    ended = _time(logged.time_ms)
    began = _time(logged.time_ms - logged.duration_ms)
    yield {
        "id": f"{logged.id}-trace",
        "timestamp": ended,
        "type": "trace-create",
        "body": {
            "id": logged.id,
            "timestamp": began,
            "name": logged.endpoint,
            "userId": logged.user_id,
            "release": VERSION,
            "metadata": {
                "request_id": logged.request_id,
                "team_id": logged.team_id or None,
                "key_id": logged.key_id,
                "trace_id": None if entry.trace is None else entry.trace.trace_id,
            },
        },
    }
    is_model_call = bool(logged.requested_model)
    observation: dict[str, Any] = {
        "id": f"{logged.id}-observation",
        "traceId": logged.id,
        "name": logged.endpoint,
        "startTime": began,
        "endTime": ended,
        "level": "ERROR" if logged.error_code or logged.status >= _ERRORS else "DEFAULT",
        "statusMessage": logged.error_code or None,
        "metadata": {
            "status": logged.status,
            "provider": logged.provider or None,
            "attempts": logged.attempts,
            "requested_model": logged.requested_model or None,
        },
    }
    if is_model_call:
        observation |= _generation(entry)
    yield {
        "id": f"{logged.id}-observation",
        "timestamp": ended,
        "type": "generation-create" if is_model_call else "span-create",
        "body": observation,
    }


def _generation(entry: ExportedRequest) -> Mapping[str, Any]:
    """Return the fields that an observation of a model has beside the others."""
    logged = entry.logged
    fields: dict[str, Any] = {
        "model": logged.model or logged.requested_model,
        "usageDetails": {"input": logged.input_tokens, "output": logged.output_tokens},
    }
    if logged.HasField("first_content_ms"):
        began_ms = logged.time_ms - logged.duration_ms
        fields["completionStartTime"] = _time(began_ms + logged.first_content_ms)
    if logged.HasField("cost_pusd"):
        fields["costDetails"] = {"total": float(decimal_dollars(logged.cost_pusd))}
    if entry.bodies is not None:
        fields["input"] = _json_or_text(entry.bodies.request)
        fields["output"] = _json_or_text(entry.bodies.response)
    return fields


def _json_or_text(content: str) -> Any:
    """Return a body as JSON; as text if it is truncated, or of a stream."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return content


def _time(time_ms: int) -> str:
    """Return a time in ISO 8601, with milliseconds."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
