"""Stores results of which the database may refuse some for good.

Those are replaced by results that say so, without what was refused: their requests would be run,
and paid for, again and again.
"""

import logging
from collections.abc import Awaitable, Collection, Sequence
from dataclasses import replace
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from gateway.batches.v1.batches_pb2 import BatchOutcome
from services.batches.records import RequestResult
from services.batches.tasks import TaskResults

_NOT_STORED = BatchOutcome.BATCH_OUTCOME_NOT_STORED
# Of the database, and of drivers, which refuse some values before they send them. Any other error
# is a fault of ours, which must not replace results.
_REFUSALS = (SQLAlchemyError, ValueError, OverflowError)

log = logging.getLogger(__name__)


class StoreResults(Protocol):
    """Stores results; see `TaskQueue.store`."""

    def __call__(
        self, parts: Sequence[TaskResults], *, is_repeated: bool = False
    ) -> Awaitable[Collection[str]]:
        """Return the ids of the tasks that were held."""


async def store_or_replace(
    store: StoreResults, parts: Sequence[TaskResults], *, is_repeated: bool = False
) -> Collection[str]:
    """Store results of tasks; return the ids of the tasks that were held.

    If the database refuses them, they are stored in halves, down to the results that it refuses,
    which are replaced. Of a task of which not even that is stored, no more is stored.

    Raises:
        GatewayError: unavailable; it is not known what has been stored.
    """
    try:
        return await store(parts, is_repeated=is_repeated)
    except _REFUSALS:
        log.exception("results could not be stored", extra={"results": _count(parts)})
    if len(parts) > 1:
        alone = [await store_or_replace(store, [each], is_repeated=True) for each in parts]
        return [task_id for held_ids in alone for task_id in held_ids]
    held_ids: Collection[str] = ()
    for smaller in _smaller(parts[0]):
        held_ids = await store_or_replace(store, [smaller], is_repeated=True)
        if not held_ids:
            break
    return held_ids


def _smaller(part: TaskResults) -> Sequence[TaskResults]:
    """Return what is stored in place of results that are refused, in order; possibly nothing."""
    results = part.results
    if len(results) > 1:
        half = len(results) // 2
        first = replace(part, results=results[:half], is_done=False)
        return first, replace(part, results=results[half:])
    if results and results[0].outcome != _NOT_STORED:
        return (replace(part, results=[_replacement(results[0])]),)
    return ()


def _replacement(result: RequestResult) -> RequestResult:
    return RequestResult(result.number, result.custom_id, _NOT_STORED, 0, "", b"")


def _count(parts: Sequence[TaskResults]) -> int:
    return sum(len(part.results) for part in parts)
