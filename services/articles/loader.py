"""Loads the documents of sessions, from the cache or from the log."""

import asyncio
from collections import OrderedDict
from functools import partial

from sqlalchemy.ext.asyncio import AsyncConnection

from services.articles.cache import DocumentCache, DocumentState
from services.articles.errors import no_session
from services.articles.metrics import ArticleMetrics
from services.articles.operation_log import OperationLog
from services.articles.sessions import LiveSession, SessionRef, SessionRepository

_KNOWN_SESSIONS = 10_000


class DocumentLoader:
    """Loads documents into the cache; concurrent calls for a document share one load."""

    def __init__(
        self,
        sessions: SessionRepository,
        operation_log: OperationLog,
        cache: DocumentCache,
        metrics: ArticleMetrics,
    ) -> None:
        self._sessions = sessions
        self._log = operation_log
        self._cache = cache
        self._metrics = metrics
        self._loading: dict[str, asyncio.Task[None]] = {}
        # The document of each session, which never changes; the least recently used one first.
        self._article_ids: OrderedDict[SessionRef, str] = OrderedDict()

    async def preload(self, session: SessionRef) -> str:
        """Load a session's document into the cache, so that no transaction waits for it.

        Returns:
            The document's id.

        Raises:
            GatewayError: 40401.
        """
        article_id = await self._article_id(session)
        if self._cache.get(article_id) is None:
            await self._load(article_id)
        return article_id

    async def current(self, connection: AsyncConnection, session: LiveSession) -> DocumentState:
        """Return a session's document, read in the caller's transaction."""
        cached = self._cache.peek(session.article_id)
        if cached is None:
            return await self._log.load_within(connection, session.article_id)
        if cached.revision >= session.revision:
            return cached
        return await self._log.catch_up(connection, session.article_id, cached)

    async def _article_id(self, session: SessionRef) -> str:
        article_id = self._article_ids.get(session)
        if article_id is not None:
            self._article_ids.move_to_end(session)
            return article_id
        article_id = await self._sessions.article_of(session)
        if article_id is None:
            raise no_session()
        self._article_ids[session] = article_id
        if len(self._article_ids) > _KNOWN_SESSIONS:
            self._article_ids.popitem(last=False)
        return article_id

    async def _load(self, article_id: str) -> None:
        task = self._loading.get(article_id)
        if task is None:
            task = asyncio.create_task(self._load_into_cache(article_id))
            self._loading[article_id] = task
            task.add_done_callback(partial(self._on_loaded, article_id))
        # A cancelled caller must not cancel the load for the others.
        await asyncio.shield(task)

    async def _load_into_cache(self, article_id: str) -> None:
        self._cache.put(article_id, await self._log.load(article_id))
        self._metrics.loaded.inc()

    def _on_loaded(self, article_id: str, task: asyncio.Task[None]) -> None:
        del self._loading[article_id]
        if not task.cancelled():
            task.exception()  # Retrieved here in case every caller was cancelled.
