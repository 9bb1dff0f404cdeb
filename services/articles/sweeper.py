"""Sweeper of documents: purges deleted ones, old operations and expired sessions."""

import logging
from contextlib import aclosing

from services.articles.metrics import Metrics
from services.articles.retention import Retention
from services.articles.sessions import SessionRepository
from services.common.leases import Lease
from services.common.settings import Articles
from services.common.sweeping import Sweeper

# Documents, or transactions, after which a sweep renews its lease.
_AT_ONCE = 20

log = logging.getLogger(__name__)


class ArticleSweeper(Sweeper):
    """The sweeper of documents."""

    def __init__(
        self,
        retention: Retention,
        sessions: SessionRepository,
        lease: Lease,
        settings: Articles,
        every_s: float,
        metrics: Metrics,
    ) -> None:
        super().__init__(lease, every_s)
        self._retention = retention
        self._sessions = sessions
        self._settings = settings
        self._metrics = metrics

    async def remove_expired(self) -> None:
        """Purge expired sessions, deleted documents, and operations beyond the quota."""
        forgotten = await self._sessions.forget_ended(self._settings.session_remembered_s)
        self._metrics.swept.labels("session").inc(forgotten)
        purged = trimmed = 0
        async with aclosing(self._retention.purge(self._settings.deleted_retention_s)) as ids:
            async for _ in ids:
                self._metrics.swept.labels("document").inc()
                purged += 1
                if purged % _AT_ONCE == 0 and not await self.renew_lease():
                    break
        async with aclosing(self._retention.trim()) as counts:
            async for count in counts:
                self._metrics.swept.labels("operation").inc(count)
                trimmed += 1
                if trimmed % _AT_ONCE == 0 and not await self.renew_lease():
                    break
        if purged:
            log.info("deleted documents swept", extra={"documents": purged})
