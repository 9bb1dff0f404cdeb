"""Metrics of vector stores, exposed by /metrics."""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Gauge
from services.memory.jobs.job_queue import Backlog, JobKind


class VectorStoreMetrics:
    """The metrics of one process; those of the job queue cover all processes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.jobs = Gauge(
            "gateway_vector_store_jobs",
            "Files that wait to be indexed or removed, or are at it.",
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self.oldest_job_s = Gauge(
            "gateway_vector_store_oldest_job_seconds",
            "Age of the oldest of them.",
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self.ended_jobs = Counter(
            "gateway_vector_store_jobs_ended",
            "Attempts at indexing (index) or removing (unindex) the text of files, by outcome.",
            ("kind", "outcome"),
            registry=registry,
        )

    def backlog(self, backlog: Backlog) -> None:
        """Record the jobs that are due."""
        self.jobs.set(backlog.jobs)
        self.oldest_job_s.set(backlog.oldest_s)

    def ended(self, kind: JobKind, outcome: str) -> None:
        """Count an attempt at a job."""
        self.ended_jobs.labels(kind.value, outcome).inc()
