"""Metrics of the article service, served by the facade's /metrics."""

from prometheus_client import CollectorRegistry

from services.common.metrics import Counter, Gauge


class Metrics:
    """Metrics of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.edits = Counter("gateway_article_edits", "Edits committed.", registry=registry)
        self.commits = Counter(
            "gateway_article_commits",
            "Transactions that calls with a session shared.",
            registry=registry,
        )
        self.conflicts = Counter(
            "gateway_article_conflicts",
            "Transactions undone because another process was first.",
            registry=registry,
        )
        self.loaded = Counter(
            "gateway_articles_loaded", "Documents read from the log.", registry=registry
        )
        self.snapshots = Counter("gateway_article_snapshots", "Snapshots kept.", registry=registry)
        self.held = Gauge(
            "gateway_articles_held",
            "Documents held in memory.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.swept = Counter(
            "gateway_articles_swept",
            "What the sweeper cleared away: documents, sessions, operations.",
            ["what"],
            registry=registry,
        )
