"""The rows of results of batches, and the sums of them in the row of a batch."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, exists

from gateway.batches.v1.batches_pb2 import BatchOutcome
from services.batches.records import RequestResult
from services.batches.tables import batch_requests, batch_results, batches

# The columns of a batch that count its results.
COUNTS = {
    BatchOutcome.BATCH_OUTCOME_SUCCEEDED: "succeeded",
    BatchOutcome.BATCH_OUTCOME_ERRORED: "errored",
    BatchOutcome.BATCH_OUTCOME_CANCELLED: "cancelled",
    BatchOutcome.BATCH_OUTCOME_EXPIRED: "expired",
    BatchOutcome.BATCH_OUTCOME_NOT_STORED: "errored",
    BatchOutcome.BATCH_OUTCOME_ABANDONED: "errored",
}


def has_result() -> ColumnElement[bool]:
    """Return the SQL condition that a request has a result."""
    return exists().where(
        batch_results.c.batch_id == batch_requests.c.batch_id,
        batch_results.c.number == batch_requests.c.number,
    )


def result_rows(batch_id: str, results: Sequence[RequestResult]) -> Sequence[Mapping[str, Any]]:
    """Return the rows of results of a batch."""
    return [
        {
            "batch_id": batch_id,
            "number": result.number,
            "custom_id": result.custom_id,
            "outcome": int(result.outcome),
            "status": result.status,
            "request_id": result.request_id,
            "body": result.body,
        }
        for result in results
    ]


def sums(results: Sequence[RequestResult]) -> Mapping[str, Any]:
    """Return the new values of the sums of a batch, whose results are added."""
    added = Counter(COUNTS[result.outcome] for result in results)
    for place, name in enumerate(("input_tokens", "output_tokens", "cached_tokens")):
        added[name] = sum(result.tokens[place] for result in results)
    # All of them, so that there is one statement, and so that the row is locked.
    return {
        name: batches.c[name] + added[name]
        for name in ("succeeded", "errored", "input_tokens", "output_tokens", "cached_tokens")
    }
