"""Clears away what is over: documents deleted long ago, sessions that ended long ago."""

import logging

from services.articles.metrics import Metrics
from services.articles.repository import ArticleRepository
from services.articles.sessions import SessionRepository
from services.common.leases import Lease
from services.common.settings import Articles
from services.common.sweeping import Sweeper

# A document may have a long log.
_AT_ONCE = 20

log = logging.getLogger(__name__)


class ArticleSweeper(Sweeper):
    """The sweeper of documents."""

    def __init__(
        self,
        articles: ArticleRepository,
        sessions: SessionRepository,
        lease: Lease,
        settings: Articles,
        every_s: float,
        metrics: Metrics,
    ) -> None:
        super().__init__(lease, every_s)
        self._articles = articles
        self._sessions = sessions
        self._settings = settings
        self._metrics = metrics

    async def clear(self) -> None:
        """Clear away ended sessions and deleted documents."""
        forgotten = await self._sessions.forget_ended(self._settings.session_remembered_s)
        self._metrics.swept.labels("session").inc(forgotten)
        while gone := await self._articles.purge_deleted(self._settings.keep_deleted_s, _AT_ONCE):
            self._metrics.swept.labels("document").inc(gone)
            log.info("deleted documents swept", extra={"documents": gone})
            if gone < _AT_ONCE or not await self.goes_on():
                break
