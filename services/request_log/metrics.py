"""Metrics of the request log."""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Gauge


class RequestLogMetrics:
    """Metrics of stored, exported, waiting and dropped entries."""

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
        self.exported = Counter(
            "gateway_request_log_exported",
            "Entries of the request log that an exporter has sent.",
            ("exporter",),
            registry=registry,
        )
        self.export_dropped = Counter(
            "gateway_request_log_export_dropped",
            "Entries of the request log that an exporter has not sent: too many waited, or all "
            "attempts failed.",
            ("exporter",),
            registry=registry,
        )
        self.export_pending = Gauge(
            "gateway_request_log_export_pending",
            "Entries of the request log that wait for an exporter.",
            ("exporter",),
            multiprocess_mode="livesum",
            registry=registry,
        )
