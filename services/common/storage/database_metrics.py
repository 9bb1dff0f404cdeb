"""Metrics of the uses of a database: waits for a connection, and errors.

They belong to an engine: `metrics_of` returns those of the engine that is used.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.process.metrics import Counter, Histogram

_OPTION = "gateway_metrics"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class DatabaseMetrics:
    """The metrics of one engine."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._wait_seconds = Histogram(
            "gateway_database_wait_seconds",
            "Time until a connection to the database is free and open.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._errors = Counter(
            "gateway_database_errors",
            "Uses of the database that failed: unavailable, storage_full, storage_unavailable.",
            ("reason",),
            registry=registry,
        )

    def observe(self, engine: AsyncEngine) -> None:
        """Count the uses of an engine from now on."""
        engine.update_execution_options(**{_OPTION: self})

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Observe the time of a block that waits for a connection."""
        began = monotonic()
        try:
            yield
        finally:
            self._wait_seconds.observe(monotonic() - began)

    def failed(self, reason: str) -> None:
        """Count a use that failed."""
        self._errors.labels(reason).inc()


def metrics_of(engine: AsyncEngine) -> DatabaseMetrics | None:
    """Return the metrics of an engine, or None if its uses are not counted."""
    metrics: DatabaseMetrics | None = engine.get_execution_options().get(_OPTION)
    return metrics
