"""Composition of the article service from settings."""

import asyncio
from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.articles.cache import DocumentCache
from services.articles.committer import DocumentCommitter
from services.articles.files import FileStore
from services.articles.groups import GroupRepository
from services.articles.metrics import Metrics
from services.articles.operation_log import OperationLog
from services.articles.repository import ArticleRepository
from services.articles.retention import Retention
from services.articles.servicer import ArticleEditorServicer
from services.articles.sessions import SessionRepository
from services.articles.sweeper import ArticleSweeper
from services.articles.usage import Usage
from services.common.clock import Clock
from services.common.disk import DiskReserve
from services.common.settings import Settings
from services.common.sweeping import sweeper_lease


class Articles:
    """The article service of one process, with its sweeper running.

    Attributes:
        servicer: the gRPC servicer.
    """

    def __init__(
        self, servicer: ArticleEditorServicer, committer: DocumentCommitter, sweeper: ArticleSweeper
    ) -> None:
        self.servicer = servicer
        self._committer = committer
        self._sweeper = sweeper
        self._sweeping = asyncio.create_task(sweeper.run())

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        clock: Clock,
        counters: CollectorRegistry,
        channel: grpc.aio.Channel,
        reserve: DiskReserve,
    ) -> Self:
        """Start the service on a migrated database; `channel` leads to the file store."""
        chosen = settings.articles
        metrics = Metrics(counters)
        owner_usage = Usage(chosen)
        articles = ArticleRepository(database, clock, owner_usage=owner_usage)
        sessions = SessionRepository(database, clock, chosen)
        committer = DocumentCommitter(
            database,
            sessions,
            OperationLog(database, clock),
            DocumentCache(chosen.cache_bytes),
            metrics,
            owner_usage,
        )
        groups = GroupRepository(database, clock) if chosen.require_grant else None
        every_s = settings.limits.sweep_every_s
        lease = sweeper_lease(database, "articles", every_s, clock)
        return cls(
            ArticleEditorServicer(
                articles, sessions, committer, FileStore(channel), groups, reserve
            ),
            committer,
            ArticleSweeper(
                Retention(database, clock, owner_usage), sessions, lease, chosen, every_s, metrics
            ),
        )

    async def stop(self) -> None:
        """Stop the sweeper and wait for what the committer started."""
        self._sweeping.cancel()
        await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._committer.stop()
        await self._sweeper.stop()
