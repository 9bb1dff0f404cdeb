"""Metrics of the database's connections, and whether the database answers.

Every answer of the database counts. While nothing asks it, it is asked, so that a worker without
requests notices too that it does not answer.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from prometheus_client import CollectorRegistry
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import QueuePool

from services.common.errors import GatewayError
from services.common.process.metrics import Gauge
from services.common.storage.database import reading_once, sync_engines
from services.common.storage.database_metrics import DatabaseMetrics

# Seconds without an answer after which the database does not answer.
SILENT_S = 10.0
_CHECK_S = 1.0
# Seconds without an answer after which it is asked.
_ASK_AFTER_S = 5.0


class DatabaseWatch:
    """Watches the database of one process.

    Args:
        engine: the database.
        max_connections: how many connections of it this process may use; 0 without a pool.
        registry: registry of the metrics.
        on_change: called with whether the database answers, when that changes.
        monotonic: the monotonic time in seconds.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        max_connections: int,
        registry: CollectorRegistry,
        on_change: Callable[[bool], Awaitable[None]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._on_change = on_change
        self._monotonic = monotonic
        self._answered_at = monotonic()
        # When it was first asked without an answer since; None: it has answered.
        self._asked_at: float | None = None
        self._asking: asyncio.Task[None] | None = None
        self._answers = True
        DatabaseMetrics(registry).observe(engine)
        self._connections = Gauge(
            "gateway_database_connections",
            "Open connections to PostgreSQL, by state: in_use, idle.",
            ("state",),
            multiprocess_mode="livesum",
            registry=registry,
        )
        most = Gauge(
            "gateway_database_max_connections",
            "Connections to PostgreSQL that may be open (storage.database_connections).",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._has_pool = max_connections > 0
        if self._has_pool:
            most.set(max_connections)
        for each in sync_engines(engine):
            event.listen(each, "after_cursor_execute", self._note_answer)

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            while True:
                await self.check()
                await asyncio.sleep(_CHECK_S)
        finally:
            if self._asking is not None:
                self._asking.cancel()
                await asyncio.gather(self._asking, return_exceptions=True)

    async def check(self) -> None:
        """Ask the database if it has been silent, and report whether it answers if that changed."""
        self._count_connections()
        now = self._monotonic()
        if self._asking is None and now - self._answered_at > _ASK_AFTER_S:
            if self._asked_at is None:
                self._asked_at = now
            self._asking = asyncio.create_task(self._ask())
            await asyncio.sleep(0)
        answers = self._asked_at is None or now - self._asked_at < SILENT_S
        if answers != self._answers:
            self._answers = answers
            await self._on_change(answers)

    async def _ask(self) -> None:
        try:
            # An error is logged where it is translated.
            with suppress(GatewayError):
                async with reading_once(self._engine) as connection:
                    await connection.execute(text("SELECT 1"))
        finally:
            self._asking = None

    def _note_answer(self, *_: object) -> None:
        """Note that the database answered; on SQLite called in other threads."""
        self._answered_at = self._monotonic()
        self._asked_at = None

    def _count_connections(self) -> None:
        pool = self._engine.pool
        if self._has_pool and isinstance(pool, QueuePool):
            self._connections.labels("in_use").set(pool.checkedout())
            self._connections.labels("idle").set(pool.checkedin())
