"""Builds the memory service from settings."""

import asyncio
from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.disk import DiskReserve
from services.common.instances import Instances
from services.common.secrets import Secrets
from services.common.settings import Memory, Settings
from services.common.sweeping import sweeper_lease
from services.memory.archive.archive import Archive
from services.memory.jobs.job_queue import JobQueue
from services.memory.jobs.job_runner import JobRunner
from services.memory.jobs.stores import Stores
from services.memory.jobs.summaries import SummaryStore
from services.memory.jobs.sweeper import MemorySweeper
from services.memory.jobs.task_client import TaskClient
from services.memory.locks.locks import LockLimits, MemoryLocks
from services.memory.management import MemoryManagement
from services.memory.metrics import MemoryMetrics
from services.memory.profile.fact_store import FactStore
from services.memory.servicer import MemoryServicer
from services.memory.storage.repository import MemoryRepository
from services.memory.turns.context import ContextReader
from services.memory.turns.turn_service import TurnService

# Seconds for which a job is claimed; the claim is renewed while the job runs.
_JOB_LEASE_S = 30.0
# Seconds that the model of a job may take; after that the job has failed and is tried again.
_TASK_TIMEOUT_S = 60.0


class MemoryService:
    """The memory service of one process, with its background work running.

    Attributes:
        servicer: answers calls of MemoryService.
    """

    def __init__(
        self,
        servicer: MemoryServicer,
        locks: MemoryLocks,
        jobs: JobRunner,
        tasks: TaskClient,
        sweeper: MemorySweeper,
    ) -> None:
        self.servicer = servicer
        self._locks = locks
        self._jobs = jobs
        self._tasks = tasks
        self._sweeper = sweeper
        self._running = [asyncio.create_task(jobs.run()), asyncio.create_task(sweeper.run())]

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        secrets: Secrets,
        clock: Clock,
        counters: CollectorRegistry,
        channel: grpc.aio.Channel,
        reserve: DiskReserve,
        instances: Instances | None,
    ) -> Self:
        """Build and start the service over a migrated database.

        `channel` reaches inference, and `instances` are the processes of this machine, where
        their deaths can be detected.
        """
        limits = settings.memory
        metrics = MemoryMetrics(counters)
        tasks = TaskClient(channel, secrets.service_credential, settings.roles, _TASK_TIMEOUT_S)
        stores = open_stores(database, clock, instances)
        locks = open_locks(database, clock, limits, instances)
        contexts = ContextReader(stores, tasks, limits, metrics)
        jobs = JobRunner(database, stores, tasks, metrics, limits.job_poll_s, instances=instances)
        turns = TurnService(stores, locks, contexts, jobs, limits, clock, metrics, reserve)
        management = MemoryManagement(database, stores, locks, contexts.embed_question)
        every_s = settings.limits.sweep_every_s
        lease = sweeper_lease(database, "memory", every_s, clock)
        return cls(
            MemoryServicer(turns, management),
            locks,
            jobs,
            tasks,
            MemorySweeper(stores.repository, locks, lease, every_s),
        )

    def reload(self, settings: Settings) -> None:
        """Use the models that the settings name now."""
        self._tasks.roles = settings.roles

    async def stop(self) -> None:
        """Stop the background work; other processes take it over where it is."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._jobs.stop()
        await self._sweeper.stop()
        await self._locks.close()


def open_stores(database: AsyncEngine, clock: Clock, instances: Instances | None = None) -> Stores:
    """Return the stores of a migrated database."""
    return Stores(
        MemoryRepository(database, clock),
        SummaryStore(database, clock),
        Archive(database, clock),
        FactStore(database),
        JobQueue(database, clock, _JOB_LEASE_S, instances),
    )


def open_locks(
    database: AsyncEngine, clock: Clock, settings: Memory, instances: Instances | None = None
) -> MemoryLocks:
    """Return this process's locks on memories."""
    limits = LockLimits(settings.lock_wait_s, settings.max_readers, settings.lock_lease_s)
    return MemoryLocks(database, clock, limits, instances)
