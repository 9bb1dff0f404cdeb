"""Builds the memory service from settings."""

import asyncio
from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.process.byte_budget import ByteBudget
from services.common.process.registry import ProcessRegistry
from services.common.settings import Memory, Settings
from services.common.storage.disk import DiskReserve
from services.common.storage.secrets import Secrets
from services.common.storage.sweeping import Sweeper, sweeper_lease
from services.memory.jobs.job_handlers import JobHandlers
from services.memory.jobs.job_queue import JobQueue
from services.memory.jobs.job_runner import JobRunner
from services.memory.jobs.stores import Stores
from services.memory.jobs.sweeper import memory_sweeper
from services.memory.jobs.task_client import TaskClient
from services.memory.locks.locks import LockLimits, MemoryLocks
from services.memory.management import MemoryManagement
from services.memory.metrics import MemoryMetrics
from services.memory.servicer import MemoryServicer
from services.memory.storage.repository import MemoryRepository
from services.memory.turns.context import ContextReader
from services.memory.turns.turn_service import TurnService
from services.memory.vector_stores.assembly import IndexTools

SERVICE_NAME = "gateway.memory.v1.MemoryService"

# Seconds for which a job is claimed; the claim is renewed while the job runs.
_JOB_LEASE_S = 30.0
# Seconds that the model of a job may take; after that the job fails and is retried.
_TASK_TIMEOUT_S = 60.0


class MemoryService:
    """The memory service of one process, with its background work running.

    Attributes:
        servicer: the gRPC servicer.
        tools: what the vector stores share with memories.
    """

    def __init__(
        self,
        servicer: MemoryServicer,
        tools: IndexTools,
        locks: MemoryLocks,
        jobs: JobRunner,
        tasks: TaskClient,
        sweeper: Sweeper,
    ) -> None:
        self.servicer = servicer
        self.tools = tools
        self._locks = locks
        self._jobs = jobs
        self._tasks = tasks
        self._sweeper = sweeper
        self._running_jobs = asyncio.create_task(jobs.run())
        sweeper.start()

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
        processes: ProcessRegistry | None,
        budget: ByteBudget,
    ) -> Self:
        """Build and start the service over a migrated database.

        `channel` leads to the inference service. `processes` are the processes of this machine;
        None where their deaths cannot be detected. `budget` limits the bytes that the process
        holds.
        """
        limits = settings.memory
        metrics = MemoryMetrics(counters)
        tasks = TaskClient(channel, secrets.service_credential, settings.roles, _TASK_TIMEOUT_S)
        queue = open_queue(database, clock, processes)
        locks = open_locks(database, clock, limits, processes)
        stores = Stores.open(database, clock, queue)
        handlers = JobHandlers(database, stores, tasks)
        jobs = JobRunner(database, queue, handlers, metrics, limits.job_poll_s, processes=processes)
        contexts = ContextReader(stores, tasks, limits, metrics)
        turns = TurnService(stores, locks, contexts, jobs, limits, clock, metrics, reserve, budget)
        management = MemoryManagement(
            database, stores, locks, contexts.embed_question, budget, clock
        )
        every_s = settings.limits.sweep_every_s
        lease = sweeper_lease(database, "memory", every_s, clock)
        sweeper = memory_sweeper(MemoryRepository(database, clock), locks, lease, every_s)
        tools = IndexTools(stores.archive, tasks, contexts.embed_question)
        return cls(MemoryServicer(turns, management), tools, locks, jobs, tasks, sweeper)

    def reload(self, settings: Settings) -> None:
        """Use the models of new settings."""
        self._tasks.roles = settings.roles

    async def stop(self) -> None:
        """Stop the background work; other processes continue the unfinished jobs."""
        self._running_jobs.cancel()
        await asyncio.gather(self._running_jobs, return_exceptions=True)
        await self._jobs.stop()
        await self._sweeper.stop()
        await self._locks.close()


def open_queue(
    database: AsyncEngine, clock: Clock, processes: ProcessRegistry | None = None
) -> JobQueue:
    """Return the queue of background jobs in a migrated database."""
    return JobQueue(database, clock, _JOB_LEASE_S, processes)


def open_locks(
    database: AsyncEngine, clock: Clock, settings: Memory, processes: ProcessRegistry | None = None
) -> MemoryLocks:
    """Return this process's locks on memories."""
    limits = LockLimits(settings.lock_wait_s, settings.max_readers, settings.lock_lease_s)
    return MemoryLocks(database, clock, limits, processes)
