"""Metrics of the memory service, exposed by /metrics."""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Counter, Gauge, Histogram
from services.memory.jobs.job_queue import Backlog, JobKind

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class MemoryMetrics:
    """The metrics of one process; those of the job queue cover all processes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.jobs = Gauge(
            "gateway_memory_jobs",
            "Background jobs that are due or running.",
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self.oldest_job_s = Gauge(
            "gateway_memory_oldest_job_seconds",
            "Age of the oldest background job that is due.",
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self.ended_jobs = Counter(
            "gateway_memory_jobs_ended",
            "Attempts at background jobs, by kind and outcome.",
            ("kind", "outcome"),
            registry=registry,
        )
        self.lock_wait_s = Histogram(
            "gateway_memory_lock_wait_seconds",
            "Wait for a memory's lock.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.retrieval_s = Histogram(
            "gateway_memory_retrieval_seconds",
            "Time to find older turns for a request.",
            buckets=_SECONDS,
            registry=registry,
        )

    def backlog(self, backlog: Backlog) -> None:
        """Record the jobs that are due."""
        self.jobs.set(backlog.jobs)
        self.oldest_job_s.set(backlog.oldest_s)

    def ended(self, kind: JobKind, outcome: str) -> None:
        """Count an attempt at a job."""
        self.ended_jobs.labels(kind.value, outcome).inc()
