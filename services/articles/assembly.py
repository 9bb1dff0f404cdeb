"""Builds the article service from settings."""

from functools import partial
from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.articles.cache import DocumentCache
from services.articles.callers import Callers, UserNames
from services.articles.comments import CommentRepository
from services.articles.committer import DocumentCommitter
from services.articles.copies import ArticleCopier
from services.articles.files import FileStoreClient
from services.articles.following import ChangeWaiter
from services.articles.groups import GroupRepository
from services.articles.history import History
from services.articles.metrics import ArticleMetrics
from services.articles.operation_log import OperationLog
from services.articles.repeats import AnsweredRequests
from services.articles.repository import ArticleRepository
from services.articles.retention import Retention
from services.articles.servicer import ArticleEditorServicer
from services.articles.sessions import SessionRepository
from services.articles.suggestions import SuggestionRepository
from services.articles.sweeper import article_sweeper
from services.articles.usage import OwnerUsage
from services.common.clock import Clock
from services.common.grpc.authentication import caller_id
from services.common.ids import new_id
from services.common.settings import Settings
from services.common.storage.disk import DiskReserve
from services.common.storage.sweeping import Sweeper, sweeper_lease
from services.media.conversion.pool import ConversionPool, PooledConverter

SERVICE_NAME = "gateway.articles.v1.ArticleEditorService"


class ArticleService:
    """The article service of one process, with its sweeper running.

    Attributes:
        servicer: the gRPC servicer.
    """

    def __init__(
        self,
        servicer: ArticleEditorServicer,
        committer: DocumentCommitter,
        sweeper: Sweeper,
        waiter: ChangeWaiter,
    ) -> None:
        self.servicer = servicer
        self._waiter = waiter
        self._committer = committer
        self._sweeper = sweeper
        sweeper.start()

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        clock: Clock,
        counters: CollectorRegistry,
        channel: grpc.aio.Channel,
        credential: bytes,
        reserve: DiskReserve,
        pool: ConversionPool,
        names_of: UserNames,
    ) -> Self:
        """Start the service on a migrated database.

        Args:
            settings: all settings of the gateway.
            database: the migrated database.
            clock: the clock.
            counters: the registry of its metrics.
            channel: channel to the file store.
            credential: the gateway's service credential.
            reserve: the free space that edits must leave.
            pool: converts documents in processes of their own.
            names_of: returns the names of users.
        """
        limits = settings.articles
        metrics = ArticleMetrics(counters)
        usage = OwnerUsage(limits)
        sessions = SessionRepository(database, clock, limits)
        operation_log = OperationLog(database, clock)
        requests = AnsweredRequests(database, clock)
        waiter = ChangeWaiter(database)
        committer = DocumentCommitter(
            database,
            sessions,
            operation_log,
            DocumentCache(limits.cache_bytes),
            metrics,
            usage,
            requests,
            waiter.notify,
        )
        articles = ArticleRepository(database, clock, owner_usage=usage)
        groups = GroupRepository(database, clock)
        servicer = ArticleEditorServicer(
            articles,
            sessions,
            committer,
            FileStoreClient(channel, credential),
            Callers(groups if limits.require_grant else None),
            groups,
            names_of,
            ArticleCopier(database, articles, operation_log, usage, partial(new_id, "")),
            CommentRepository(database, clock, requests),
            SuggestionRepository(database, clock, requests),
            reserve,
            History(committer, operation_log),
            PooledConverter(pool, caller_id),
            waiter,
        )
        every_s = settings.limits.sweep_every_s
        lease = sweeper_lease(database, "articles", every_s, clock)
        retention = Retention(database, clock, usage)
        sweeper = article_sweeper(retention, sessions, requests, lease, limits, every_s, metrics)
        return cls(servicer, committer, sweeper, waiter)

    def end_waiting(self) -> None:
        """Answer the calls that wait for changes of documents."""
        self._waiter.end()

    async def stop(self) -> None:
        """Stop the sweeper, and wait for running transactions and snapshots."""
        await self._sweeper.stop()
        await self._committer.stop()
