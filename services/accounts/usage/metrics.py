"""Metrics of stored usage and its reports."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Histogram

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class StoredUsageMetrics:
    """The metrics of one process.

    Attributes:
        deleted: deleted rows, by table.
        dropped_days: days of records that were dropped whole.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.deleted = Counter(
            "gateway_usage_rows_deleted",
            "Old rows of usage that were deleted, by table.",
            ("table",),
            registry=registry,
        )
        self.dropped_days = Counter(
            "gateway_usage_days_dropped",
            "Days of old usage records that were dropped whole, on PostgreSQL.",
            registry=registry,
        )
        self._report_seconds = Histogram(
            "gateway_usage_report_seconds",
            "Time to read a page of a report: usage, activity.",
            ("report",),
            buckets=_SECONDS,
            registry=registry,
        )

    @contextmanager
    def reporting(self, report: str) -> Iterator[None]:
        """Observe the time of a block that reads a page of a report."""
        began = monotonic()
        try:
            yield
        finally:
            self._report_seconds.labels(report).observe(monotonic() - began)
