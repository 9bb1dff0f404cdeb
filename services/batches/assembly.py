"""Builds the service of batches from settings."""

from typing import Self

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.batches.collecting import Collecting
from services.batches.execution import BatchCall, BatchFormats, Execute, Execution, Render
from services.batches.file_calls import BatchFiles
from services.batches.finalizing import Finalizing
from services.batches.metrics import BatchMetrics
from services.batches.provider_calls import NO_PROVIDERS, BatchServices
from services.batches.provider_queue import ProviderQueue
from services.batches.records import BatchLimits, TaskKind
from services.batches.repository import BatchRepository
from services.batches.runner import BatchRunner
from services.batches.servicer import BatchServicer
from services.batches.submitting import Submitting
from services.batches.sweeper import batch_sweeper
from services.batches.task_queue import TaskQueue
from services.batches.validation import Validation
from services.common.clock import Clock
from services.common.grpc.delegated_keys import DelegatedKeys
from services.common.process.byte_budget import ByteBudget
from services.common.process.registry import ProcessRegistry
from services.common.settings import Settings
from services.common.storage.disk import DiskReserve
from services.common.storage.sweeping import Sweeper, sweeper_lease


class BatchService:
    """The service of batches in one process, with its sweeper running.

    Attributes:
        servicer: the gRPC servicer.
    """

    def __init__(
        self,
        settings: Settings,
        queue: TaskQueue,
        repository: BatchRepository,
        files: BatchFiles,
        formats: BatchFormats,
        keys: DelegatedKeys,
        clock: Clock,
        metrics: BatchMetrics,
        reserve: DiskReserve,
        sweeper: Sweeper,
        budget: ByteBudget,
        at_providers: ProviderQueue,
        providers: BatchServices,
    ) -> None:
        self._at_providers = at_providers
        self._providers = providers
        self._budget = budget
        self._sweeper = sweeper
        self._settings = settings.batches
        self._queue = queue
        self._keys = keys
        self._clock = clock
        self._metrics = metrics
        self._validation = Validation(queue, files, formats, repository.limits, clock)
        self._finalizing = Finalizing(queue, repository, files, formats, clock)
        self._runner: BatchRunner | None = None
        self.servicer = BatchServicer(
            repository, files, formats.endpoints, reserve, self._wake, self._cancel
        )

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        clock: Clock,
        counters: CollectorRegistry,
        channel: grpc.aio.Channel,
        keys: DelegatedKeys,
        reserve: DiskReserve,
        processes: ProcessRegistry | None,
        budget: ByteBudget,
        formats: BatchFormats,
        providers: BatchServices = NO_PROVIDERS,
    ) -> Self:
        """Build the service over a migrated database; `run` begins to run batches.

        Args:
            settings: all settings of the gateway.
            database: the database.
            clock: the clock.
            counters: registry for the metrics.
            channel: leads to the file store.
            keys: makes the keys of calls for batches.
            reserve: the free disk space that storing requires.
            processes: the processes of this machine, if their deaths can be detected.
            budget: limits the bytes that the process holds.
            formats: the endpoints, and the lines of files.
            providers: the batch services of providers; by default there are none.
        """
        batches = settings.batches
        limits = BatchLimits(
            max_requests=batches.max_requests,
            max_bytes=batches.max_bytes,
            max_body_bytes=settings.limits.max_body_bytes,
            max_open=batches.max_open_per_user,
            window_s=batches.window_s,
            retention_s=batches.retention_s,
            lease_s=batches.lease_s,
        )
        queue = TaskQueue(database, clock, limits.lease_s, processes)
        repository = BatchRepository(database, clock, limits, lambda: providers.has_any)
        metrics = BatchMetrics(counters)
        files = BatchFiles(channel, keys.to_store)
        every_s = settings.limits.sweep_every_s
        lease = sweeper_lease(database, "batches", every_s, clock)
        sweeper = batch_sweeper(repository, queue, metrics, clock, lease, every_s)
        sweeper.start()
        return cls(
            settings,
            queue,
            repository,
            files,
            formats,
            keys,
            clock,
            metrics,
            reserve,
            sweeper,
            budget,
            ProviderQueue(database, clock, queue),
            providers,
        )

    def run(self, execute: Execute, render: Render) -> None:
        """Begin to run the requests of batches.

        Args:
            execute: executes a request.
            render: renders a request for the batch service of its provider.
        """
        if not self._settings.enabled:
            return

        async def execute_counted(call: BatchCall) -> Execution:
            execution = await execute(call)
            self._metrics.requests.labels(str(execution.status)).inc()
            return execution

        queue, clock, budget = self._queue, self._clock, self._budget
        at_providers, providers, key_of = self._at_providers, self._providers, self._keys.to_run
        submitting = Submitting(queue, at_providers, providers, render, key_of, budget, clock)
        collecting = Collecting(
            queue,
            at_providers,
            providers,
            execute_counted,
            key_of,
            budget,
            clock,
            self._settings.provider_poll_every_s,
        )
        self._runner = BatchRunner(
            self._queue,
            {
                TaskKind.VALIDATE: self._validation.run,
                TaskKind.SUBMIT: submitting.run,
                TaskKind.COLLECT: collecting.run,
                TaskKind.FINALIZE: self._finalizing.run,
            },
            self._finalizing,
            execute_counted,
            self._keys.to_run,
            self._budget,
            self._settings.max_parallel_requests,
            self._settings.max_parallel_requests_per_user,
            self._settings.provider_poll_every_s,
            self._clock,
            self._metrics,
        )

    async def drain(self, within_s: float) -> None:
        """Begin no more requests, wait for those in progress, and release all tasks."""
        if self._runner is not None:
            await self._runner.stop(within_s)

    async def stop(self) -> None:
        """Stop the sweeper, and what is left to run."""
        await self.drain(0)
        await self._sweeper.stop()

    def _wake(self) -> None:
        if self._runner is not None:
            self._runner.wake()

    def _cancel(self, batch_id: str) -> None:
        if self._runner is not None:
            self._runner.cancel(batch_id)
