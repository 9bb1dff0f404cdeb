"""Builds the memory service from settings."""

import asyncio
from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.database import is_sqlite
from services.common.disk import DiskReserve
from services.common.ids import Source
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

# Seconds for which a job is held; whoever works on it renews that.
_JOB_LEASE_S = 30.0
# A side job's model gets as long; after that the job has failed and is tried again.
_ROLE_TIMEOUT_S = 60.0


class MemoryService:
    """The memory service of one process, its background work under way.

    Attributes:
        servicer: answers calls.
    """

    def __init__(
        self,
        servicer: MemoryServicer,
        locks: MemoryLocks,
        jobs: JobRunner,
        roles: TaskClient,
        sweeper: MemorySweeper,
        instances: Instances | None,
    ) -> None:
        self.servicer = servicer
        self._instances = instances
        self._locks = locks
        self._jobs = jobs
        self._roles = roles
        self._sweeper = sweeper
        self._running = [asyncio.create_task(jobs.run()), asyncio.create_task(sweeper.run())]

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        secrets: Secrets,
        source: Source,
        counters: CollectorRegistry,
        channel: grpc.aio.Channel,
        reserve: DiskReserve,
    ) -> Self:
        """Build it over a migrated database; `channel` reaches inference."""
        chosen = settings.memory
        metrics = MemoryMetrics(counters)
        roles = TaskClient(channel, secrets.service_credential, settings.roles, _ROLE_TIMEOUT_S)
        # Of a process on another machine nobody can tell whether it lives.
        instances = None
        if is_sqlite(settings.storage):
            instances = Instances.enter(settings.storage.data_dir, source)
        stores = open_stores(database, source, instances)
        locks = open_locks(database, source, chosen, instances)
        contexts = ContextReader(stores, roles, chosen, metrics)
        jobs = JobRunner(database, stores, roles, metrics, chosen.job_poll_s, instances=instances)
        taking = TurnService(stores, locks, contexts, jobs, chosen, source, metrics, reserve)
        every_s = settings.limits.sweep_every_s
        lease = sweeper_lease(database, "memory", every_s, source)
        return cls(
            MemoryServicer(taking, MemoryManagement(database, stores, locks, contexts.embedded)),
            locks,
            jobs,
            roles,
            MemorySweeper(stores.repository, locks, lease, every_s),
            instances,
        )

    def reload(self, settings: Settings) -> None:
        """Take the models that settings choose now."""
        self._roles.chosen = settings.roles

    async def stop(self) -> None:
        """End the background work; whoever takes it over goes on from where it is."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._jobs.stop()
        await self._sweeper.stop()
        await self._locks.close()
        if self._instances:
            self._instances.leave()


def open_stores(
    database: AsyncEngine, source: Source, instances: Instances | None = None
) -> Stores:
    """Return what is kept of memories in a migrated database."""
    return Stores(
        MemoryRepository(database, source),
        SummaryStore(database, source),
        Archive(database, source),
        FactStore(database, source),
        JobQueue(database, source, _JOB_LEASE_S, instances),
    )


def open_locks(
    database: AsyncEngine, source: Source, chosen: Memory, instances: Instances | None = None
) -> MemoryLocks:
    """Return this process's locks on memories."""
    limits = LockLimits(chosen.lock_wait_s, chosen.readers, chosen.lock_lease_s)
    return MemoryLocks(database, source, limits, instances)
