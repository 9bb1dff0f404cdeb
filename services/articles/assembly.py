"""Builds the article service from settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.articles.v1 import articles_pb2_grpc
from services.articles import servicer_factory
from services.articles.metrics import ArticleMetrics
from services.articles.retention import Retention
from services.articles.sessions import SessionRepository
from services.articles.sweeper import article_sweeper
from services.articles.usage import OwnerUsage
from services.common.clock import Clock
from services.common.disk import DiskReserve
from services.common.settings import Settings
from services.common.sweeping import Sweeper, sweeper_lease

SERVICE_NAME = "gateway.articles.v1.ArticleEditorService"


class Articles:
    """The article service of one process, with its sweeper running."""

    def __init__(
        self, open_editing: Callable[[], servicer_factory.ArticleEditing], sweeper: Sweeper
    ) -> None:
        self._open_editing = open_editing
        self._editing: servicer_factory.ArticleEditing | None = None
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
        reserve: DiskReserve,
    ) -> Self:
        """Start the service on a migrated database; `channel` leads to the file store."""
        chosen = settings.articles
        metrics = ArticleMetrics(counters)
        usage = OwnerUsage(chosen)
        sessions = SessionRepository(database, clock, chosen)
        every_s = settings.limits.sweep_every_s
        lease = sweeper_lease(database, "articles", every_s, clock)

        def open_editing() -> servicer_factory.ArticleEditing:
            return servicer_factory.ArticleEditing(
                chosen, database, clock, sessions, usage, metrics, channel, reserve
            )

        return cls(
            open_editing,
            article_sweeper(
                Retention(database, clock, usage), sessions, lease, chosen, every_s, metrics
            ),
        )

    def register(self, server: Any) -> None:
        """Build the gRPC servicer, and add it to a server."""
        self._editing = self._open_editing()
        articles_pb2_grpc.add_ArticleEditorServiceServicer_to_server(self._editing.servicer, server)

    async def stop(self) -> None:
        """Stop the sweeper, and wait for running transactions and snapshots."""
        await self._sweeper.stop()
        if self._editing is not None:
            await self._editing.stop()
