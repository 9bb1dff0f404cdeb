"""Clears away what is over: documents deleted long ago, sessions that ended long ago."""

import asyncio
import logging

from services.articles.metrics import Metrics
from services.articles.repository import ArticleRepository
from services.articles.sessions import SessionRepository
from services.common.errors import GatewayError
from services.common.leases import Lease
from services.common.settings import Articles

LEASE = "articles_sweeper"
# How many periods between sweeps a lease lasts: whoever holds it renews it in each.
LEASE_PERIODS = 3

# A document may have a long log.
_AT_ONCE = 20

log = logging.getLogger(__name__)


class Sweeper:
    """The sweeper of one process; of those that share a database one at a time works."""

    def __init__(
        self,
        articles: ArticleRepository,
        sessions: SessionRepository,
        lease: Lease,
        settings: Articles,
        every_s: float,
        metrics: Metrics,
    ) -> None:
        self._articles = articles
        self._sessions = sessions
        self._lease = lease
        self._settings = settings
        self._every_s = every_s
        self._metrics = metrics

    async def run(self) -> None:
        """Sweep for ever; what does not work now is tried again the next time."""
        while True:
            try:
                await self.sweep()
            except GatewayError as error:
                log.warning("a sweep was cut short", extra={"error": error.message})
            except Exception:
                log.exception("a sweep failed")
            await asyncio.sleep(self._every_s)

    async def sweep(self) -> bool:
        """Clear away what is over, unless another process does; tell whether it was ours to do.

        Raises:
            GatewayError: unavailable; what was cleared by then is.
        """
        if not await self._lease.take():
            return False
        forgotten = await self._sessions.forget_ended(self._settings.session_remembered_s)
        self._metrics.swept.labels("session").inc(forgotten)
        while gone := await self._articles.purge_deleted(self._settings.keep_deleted_s, _AT_ONCE):
            self._metrics.swept.labels("document").inc(gone)
            log.info("deleted documents swept", extra={"documents": gone})
            if gone < _AT_ONCE or not await self._lease.take():
                break
        return True

    async def stop(self) -> None:
        """Leave the work to another process, at once."""
        try:
            await self._lease.release()
        except GatewayError as error:
            log.warning("the sweeper's lease was left", extra={"error": error.message})
