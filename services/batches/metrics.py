"""Metrics of batches."""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Gauge


class BatchMetrics:
    """The metrics of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.tasks = Counter(
            "gateway_batch_tasks",
            "Tasks of batches that this process has begun, by kind: validate, submit (to batch "
            "services of providers), collect (look at a batch there), run (up to 200 requests) or "
            "finalize.",
            ["kind"],
            registry=registry,
        )
        self.requests = Counter(
            "gateway_batch_requests",
            "Requests of batches that have been executed, with repetitions, by HTTP status.",
            ["status"],
            registry=registry,
        )
        # Set by the process that swept last.
        self.queued_tasks = Gauge(
            "gateway_batch_queued_tasks",
            "Tasks of batches that no process runs, as of the last sweep.",
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self.queue_age = Gauge(
            "gateway_batch_queue_age_seconds",
            "Age of the oldest batch with such a task, as of the last sweep; 0 without one.",
            multiprocess_mode="mostrecent",
            registry=registry,
        )
