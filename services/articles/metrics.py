"""Metrics of the article service, served by the facade's /metrics."""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Gauge


class ArticleMetrics:
    """Metrics of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.edits = Counter("gateway_article_edits", "Edits committed.", registry=registry)
        self.commits = Counter(
            "gateway_article_commits",
            "Transactions shared by several calls of a session.",
            registry=registry,
        )
        self.conflicts = Counter(
            "gateway_article_conflicts",
            "Transactions rolled back because another process committed first.",
            registry=registry,
        )
        self.loaded = Counter(
            "gateway_articles_loaded", "Documents loaded from the log.", registry=registry
        )
        self.snapshots = Counter("gateway_article_snapshots", "Snapshots kept.", registry=registry)
        self.held = Gauge(
            "gateway_articles_held",
            "Documents in the cache.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.swept = Counter(
            "gateway_articles_swept",
            "Rows deleted by the sweeper: documents, sessions, operations.",
            ["what"],
            registry=registry,
        )
