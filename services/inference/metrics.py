"""What inference counts, shown by the facades' /metrics."""

from prometheus_client import CollectorRegistry, Gauge


class Metrics:
    """The counters of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.live_upstream_calls = Gauge(
            "gateway_upstream_live_calls",
            "Calls under way at providers now.",
            multiprocess_mode="livesum",
            registry=registry,
        )
