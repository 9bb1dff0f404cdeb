"""Metrics of the request log."""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Gauge


class RequestLogMetrics:
    """Metrics of stored, waiting and dropped entries."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.written = Counter(
            "gateway_request_log_written",
            "Entries of the request log that were stored.",
            registry=registry,
        )
        self.dropped = Counter(
            "gateway_request_log_dropped",
            "Entries of the request log that were lost: too many waited, or the database rejected "
            "them.",
            registry=registry,
        )
        self.pending = Gauge(
            "gateway_request_log_pending",
            "Entries of the request log that wait to be stored.",
            multiprocess_mode="livesum",
            registry=registry,
        )
