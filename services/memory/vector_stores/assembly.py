"""Builds the service of vector stores from settings."""

import asyncio
from dataclasses import dataclass
from typing import Final, Self

from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.process.registry import ProcessRegistry
from services.common.settings import Settings
from services.common.storage.disk import DiskReserve
from services.common.storage.sweeping import Sweeper, sweeper_lease
from services.memory.archive.archive import Archive
from services.memory.jobs.job_queue import VECTOR_STORE_JOBS, JobQueue
from services.memory.jobs.job_worker import JobWorker
from services.memory.jobs.task_client import TaskClient
from services.memory.vector_stores.file_repository import VectorStoreFileRepository
from services.memory.vector_stores.file_rows import FileLimits
from services.memory.vector_stores.file_text import FileTexts
from services.memory.vector_stores.index_repository import IndexRepository
from services.memory.vector_stores.indexing import IndexingJobs
from services.memory.vector_stores.metrics import VectorStoreMetrics
from services.memory.vector_stores.searching import EmbedQuestion, VectorStoreSearch
from services.memory.vector_stores.servicer import VectorStoreServicer
from services.memory.vector_stores.store_repository import StoreRepository
from services.memory.vector_stores.sweeper import vector_store_sweeper

# Seconds for which a job is claimed; the claim is renewed while the job runs.
_JOB_LEASE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class IndexTools:
    """What vector stores share with memories.

    Attributes:
        archive: the index.
        tasks: embeds texts, if an embedding model is configured.
        embed_question: returns the vectors of questions.
    """

    archive: Archive
    tasks: TaskClient
    embed_question: EmbedQuestion


class VectorStoreService:
    """The service of vector stores in one process, with its background work running.

    Attributes:
        servicer: the gRPC servicer.
    """

    def __init__(self, servicer: VectorStoreServicer, jobs: JobWorker, sweeper: Sweeper) -> None:
        self.servicer = servicer
        self._jobs = jobs
        self._sweeper = sweeper
        self._running_jobs: asyncio.Task[None] | None = None
        sweeper.start()

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        clock: Clock,
        counters: CollectorRegistry,
        texts: FileTexts,
        tools: IndexTools,
        reserve: DiskReserve,
        processes: ProcessRegistry | None,
    ) -> Self:
        """Build and start the service over a migrated database.

        Args:
            settings: all settings of the gateway.
            database: the database.
            clock: the clock.
            counters: registry for the metrics.
            texts: reads the text of files.
            tools: what vector stores share with memories.
            reserve: the free disk space that storing requires.
            processes: the processes of this machine, if their deaths can be detected.
        """
        limits = settings.vector_stores
        queue = JobQueue(database, clock, _JOB_LEASE_S, processes, kinds=VECTOR_STORE_JOBS)
        stores = StoreRepository(database, clock, queue, limits.max_per_user)
        file_limits = FileLimits(limits.max_files, limits.max_chunks, limits.max_bytes_per_user)
        files = VectorStoreFileRepository(database, clock, queue, file_limits)
        indexed = IndexRepository(database, queue, file_limits)
        search = VectorStoreSearch(stores, files, tools.archive, tools.embed_question)
        jobs = JobWorker(
            queue,
            IndexingJobs(stores, indexed, texts.text, tools.tasks).run,
            VectorStoreMetrics(counters),
            settings.memory.job_poll_s,
            at_once=limits.max_parallel_files,
            processes=processes,
        )
        every_s = settings.limits.sweep_every_s
        lease = sweeper_lease(database, "vector_stores", every_s, clock)
        sweeper = vector_store_sweeper(stores, lease, every_s)
        servicer = VectorStoreServicer(stores, files, texts, search, reserve, jobs.wake)
        service = cls(servicer, jobs, sweeper)
        if limits.enabled:
            service._running_jobs = asyncio.create_task(jobs.run())
        return service

    async def stop(self) -> None:
        """Stop the background work; other processes continue the unfinished jobs."""
        if self._running_jobs is not None:
            self._running_jobs.cancel()
            await asyncio.gather(self._running_jobs, return_exceptions=True)
        await self._jobs.stop()
        await self._sweeper.stop()
