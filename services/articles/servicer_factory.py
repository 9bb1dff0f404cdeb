"""Builds the gRPC servicer of the article service."""

import grpc
from sqlalchemy.ext.asyncio import AsyncEngine

from services.articles.cache import DocumentCache
from services.articles.committer import DocumentCommitter
from services.articles.files import FileStore
from services.articles.groups import GroupRepository
from services.articles.metrics import ArticleMetrics
from services.articles.operation_log import OperationLog
from services.articles.repository import ArticleRepository
from services.articles.servicer import ArticleEditorServicer
from services.articles.sessions import SessionRepository
from services.articles.usage import OwnerUsage
from services.common.clock import Clock
from services.common.disk import DiskReserve
from services.common.settings import Articles as ArticleSettings


class ArticleEditing:
    """The servicer and the committer of the article service.

    Attributes:
        servicer: the gRPC servicer.
    """

    def __init__(
        self,
        settings: ArticleSettings,
        database: AsyncEngine,
        clock: Clock,
        sessions: SessionRepository,
        usage: OwnerUsage,
        metrics: ArticleMetrics,
        channel: grpc.aio.Channel,
        reserve: DiskReserve,
    ) -> None:
        """Build both over a migrated database; `channel` leads to the file store."""
        self._committer = DocumentCommitter(
            database,
            sessions,
            OperationLog(database, clock),
            DocumentCache(settings.cache_bytes),
            metrics,
            usage,
        )
        self.servicer = ArticleEditorServicer(
            ArticleRepository(database, clock, owner_usage=usage),
            sessions,
            self._committer,
            FileStore(channel),
            GroupRepository(database, clock) if settings.require_grant else None,
            reserve,
        )

    async def stop(self) -> None:
        """Wait for the committer's running transaction and snapshots."""
        await self._committer.stop()
