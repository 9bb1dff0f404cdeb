"""Sweeper of documents: purges deleted ones, old operations, requests and sessions."""

import logging
from contextlib import aclosing

from services.articles.metrics import ArticleMetrics
from services.articles.repeats import AnsweredRequests
from services.articles.retention import Retention
from services.articles.sessions import SessionRepository
from services.common.settings import Articles
from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper, remove_in_batches

# Documents, or transactions, after which a sweep renews its lease.
_AT_ONCE = 20
# Sessions or requests of one transaction.
_ROWS_AT_ONCE = 1_000

log = logging.getLogger(__name__)


def article_sweeper(
    retention: Retention,
    sessions: SessionRepository,
    requests: AnsweredRequests,
    lease: Lease,
    settings: Articles,
    every_s: float,
    metrics: ArticleMetrics,
) -> Sweeper:
    """Return the sweeper of sessions, requests, deleted documents, and old operations."""

    async def forget_ended(at_most: int) -> int:
        ended = await sessions.forget_ended(settings.session_remembered_s, at_most)
        metrics.swept.labels("session").inc(ended)
        return ended

    async def remove_expired(renew: Renew) -> None:
        await remove_in_batches(forget_ended, _ROWS_AT_ONCE, renew)
        await remove_in_batches(requests.forget_old, _ROWS_AT_ONCE, renew)
        purged = trimmed = 0
        async with aclosing(retention.purge(settings.deleted_retention_s)) as ids:
            async for _ in ids:
                metrics.swept.labels("document").inc()
                purged += 1
                if purged % _AT_ONCE == 0 and not await renew():
                    break
        async with aclosing(retention.trim()) as counts:
            async for count in counts:
                metrics.swept.labels("operation").inc(count)
                trimmed += 1
                if trimmed % _AT_ONCE == 0 and not await renew():
                    break
        if purged:
            log.info("deleted documents swept", extra={"documents": purged})

    return Sweeper(lease, every_s, remove_expired)
