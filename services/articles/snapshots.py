"""Snapshots of documents, taken in the background after commits."""

import asyncio
import logging

from msgspec.structs import replace

from services.articles.cache import DocumentCache, DocumentState
from services.articles.metrics import ArticleMetrics
from services.articles.operation_log import OperationLog

# A snapshot is due when replaying the operations since the last one takes as long as reading a
# snapshot: when there are many of them, or when they are as large as the snapshot.
SNAPSHOT_EVERY = 500
_SMALLEST_TAIL = 256 << 10

log = logging.getLogger(__name__)


class SnapshotTaker:
    """Takes due snapshots, one at a time of each document."""

    def __init__(
        self, operation_log: OperationLog, cache: DocumentCache, metrics: ArticleMetrics
    ) -> None:
        self._log = operation_log
        self._cache = cache
        self._metrics = metrics
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def take_if_due(self, article_id: str, state: DocumentState) -> None:
        """Start taking a snapshot of a committed state if one is due."""
        if is_snapshot_due(state) and article_id not in self._tasks:
            self._tasks[article_id] = asyncio.create_task(self._take(article_id, state))

    async def stop(self) -> None:
        """Wait for the snapshots that were started."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _take(self, article_id: str, state: DocumentState) -> None:
        try:
            snapshot = await self._log.take_snapshot(article_id, state)
            cached = self._cache.get(article_id)
            if cached is not None:
                since = replace(
                    cached,
                    snapshot_bytes=snapshot.snapshot_bytes,
                    tail_operations=max(0, cached.tail_operations - state.tail_operations),
                    tail_bytes=max(0, cached.tail_bytes - state.tail_bytes),
                )
                self._cache.put(article_id, since)
            self._metrics.snapshots.inc()
        except Exception:
            # Nothing is lost: the log has every operation, and the next edit tries again.
            log.exception("a snapshot could not be stored")
        finally:
            del self._tasks[article_id]


def is_snapshot_due(state: DocumentState) -> bool:
    """Return whether loading the document from the log would have too much to replay."""
    return state.tail_operations >= SNAPSHOT_EVERY or state.tail_bytes >= max(
        _SMALLEST_TAIL, state.snapshot_bytes
    )
