"""Sweeper of batches."""

from services.batches.metrics import BatchMetrics
from services.batches.repository import BatchRepository
from services.batches.task_queue import TaskQueue
from services.common.clock import Clock
from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper


def batch_sweeper(
    repository: BatchRepository,
    queue: TaskQueue,
    metrics: BatchMetrics,
    clock: Clock,
    lease: Lease,
    every_s: float,
) -> Sweeper:
    """Return the sweeper of batches whose time is over; it also measures the queue."""

    async def remove_expired(renew: Renew) -> None:
        state = await queue.state()
        metrics.queued_tasks.set(state.free)
        age_ms = 0 if state.oldest_ms is None else max(0, clock.now_ms() - state.oldest_ms)
        metrics.queue_age.set(age_ms / 1000)
        while await repository.delete_expired() and await renew():
            pass

    return Sweeper(lease, every_s, remove_expired)
