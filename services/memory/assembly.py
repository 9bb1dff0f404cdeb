"""Builds the memory service from settings."""

import asyncio
from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.database import is_sqlite
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
from services.memory.responses.conversation import ConversationReader
from services.memory.responses.records import ResponseLimits
from services.memory.responses.repository import ResponseRepository
from services.memory.responses.runs import ResponseRuns
from services.memory.responses.servicer import ResponseServicer
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
        responses: answers calls of ResponseService.
    """

    def __init__(
        self,
        servicer: MemoryServicer,
        responses: ResponseServicer,
        runs: ResponseRuns,
        locks: MemoryLocks,
        jobs: JobRunner,
        tasks: TaskClient,
        sweeper: MemorySweeper,
        instances: Instances | None,
    ) -> None:
        self.servicer = servicer
        self.responses = responses
        self._runs = runs
        self._instances = instances
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
    ) -> Self:
        """Build and start the service over a migrated database; `channel` reaches inference."""
        limits = settings.memory
        metrics = MemoryMetrics(counters)
        tasks = TaskClient(channel, secrets.service_credential, settings.roles, _TASK_TIMEOUT_S)
        # The death of a process on another machine cannot be detected.
        instances = None
        if is_sqlite(settings.storage):
            instances = Instances.enter(settings.storage.data_dir)
        stores = open_stores(database, clock, instances)
        locks = open_locks(database, clock, limits, instances)
        contexts = ContextReader(stores, tasks, limits, metrics)
        jobs = JobRunner(database, stores, tasks, metrics, limits.job_poll_s, instances=instances)
        turns = TurnService(stores, locks, contexts, jobs, limits, clock, metrics, reserve)
        management = MemoryManagement(database, stores, locks, contexts.embed_question)
        responses = open_responses(database, clock, settings, instances)
        runs = ResponseRuns(responses)
        conversations = ConversationReader(database, clock, responses.limits)
        every_s = settings.limits.sweep_every_s
        lease = sweeper_lease(database, "memory", every_s, clock)
        return cls(
            MemoryServicer(turns, management),
            ResponseServicer(responses, runs, conversations, limits.storage, reserve),
            runs,
            locks,
            jobs,
            tasks,
            MemorySweeper(stores.repository, locks, responses, lease, every_s),
            instances,
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
        await self._runs.close()
        await self._locks.close()
        if self._instances:
            self._instances.leave()


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


def open_responses(
    database: AsyncEngine, clock: Clock, settings: Settings, instances: Instances | None = None
) -> ResponseRepository:
    """Return the stored responses of a migrated database."""
    memory = settings.memory
    limits = ResponseLimits(
        ttl_s=memory.response_ttl_s,
        lease_s=memory.response_lease_s,
        max_bytes=memory.max_response_bytes,
        max_conversation=memory.max_conversation,
        # As many as a request that sends the conversation itself may have.
        max_conversation_bytes=settings.limits.max_body_bytes,
    )
    return ResponseRepository(database, clock, limits, instances)
