"""Runs background jobs in one process.

Every process runs a few jobs at a time: its own at once, and those of other processes when it polls
the queue. A failed job is retried with growing delays.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from services.common import ids
from services.common.errors import GatewayError
from services.common.process import logs
from services.common.process.registry import ProcessRegistry
from services.common.storage.leased_rows import LeaseRenewer, wait_briefly
from services.memory.jobs.job_handlers import MemoryChangedError
from services.memory.jobs.job_queue import Backlog, Job, JobKind, JobLostError, JobQueue
from services.memory.jobs.retries import retry_after_s

# Seconds until a job whose memory changed meanwhile is run again.
_CHANGED_RETRY_S = 0.2
# How many times longer the interval between two polls is while no job is due.
_QUIET = 5

log = logging.getLogger(__name__)


class JobObserver(Protocol):
    """Observer of the job queue and of ended jobs, for metrics."""

    def backlog(self, backlog: Backlog) -> None:
        """Record the jobs that are due."""

    def ended(self, kind: JobKind, outcome: str) -> None:
        """Record an ended job: `done`, `failed`, `taken_over`, `moved`, `lost` or `dropped`."""


class JobWorker:
    """Runs the jobs of one queue.

    Args:
        queue: the queue.
        run_job: runs a job; see `JobHandlers.run` for its errors.
        observer: the metrics of jobs.
        poll_s: seconds between two polls for jobs of other processes, on average; while none is
            due, five times as many.
        at_once: maximum number of jobs that run at a time.
        uniform: random source for jitter.
        processes: the processes of this machine; jobs of dead ones are released.
    """

    def __init__(
        self,
        queue: JobQueue,
        run_job: Callable[[Job], Awaitable[None]],
        observer: JobObserver,
        poll_s: float,
        *,
        at_once: int,
        uniform: Callable[[float, float], float] = ids.uniform,
        processes: ProcessRegistry | None = None,
    ) -> None:
        self._processes = processes
        self._queue = queue
        self._handle = run_job
        self._observer = observer
        self._poll_s = poll_s
        self._at_once = at_once
        self._uniform = uniform
        self._renewer = LeaseRenewer(self._queue.renew, self._queue.lease_s)
        self._woken = asyncio.Event()
        self._ended = asyncio.Event()
        self._running: dict[Job, asyncio.Task[None]] = {}

    def wake(self) -> None:
        """Poll the queue now."""
        self._woken.set()

    async def run(self) -> None:
        """Run jobs until cancelled; failed jobs and polls are retried later."""
        while True:
            self._woken.clear()
            wait_s = self._poll_s * self._uniform(0.5, 1.5)
            try:
                if not await self._poll():
                    wait_s *= _QUIET
            except GatewayError as error:
                log.warning("the job queue could not be polled", extra={"error": error.message})
            except Exception:
                log.exception("polling the job queue failed")
            await wait_briefly(self._woken, wait_s)

    async def stop(self) -> None:
        """Stop the running jobs, and release them to other processes at once."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._renewer.close()

    async def _poll(self) -> bool:
        """Run jobs that are due; return whether any was due."""
        if self._processes:
            await self._processes.reap_dead()
        backlog = await self._queue.backlog()
        self._observer.backlog(backlog)
        if backlog.jobs and (free := self._at_once - len(self._running)) > 0:
            for job in await self._queue.claim(free):
                self._start(job)
        return backlog.jobs > 0

    def _start(self, job: Job) -> None:
        task = asyncio.create_task(self._run_job(job), name=job.id)
        self._running[job] = task
        self._renewer.add(job, task.cancel)
        task.add_done_callback(lambda _: self._end(job))

    def _end(self, job: Job) -> None:
        self._renewer.discard(job)
        del self._running[job]
        ended, self._ended = self._ended, asyncio.Event()
        ended.set()
        self.wake()

    async def _run_job(self, job: Job) -> None:
        logs.request_id.set(job.id)
        self._observer.ended(job.kind, await self._outcome(job))

    async def _outcome(self, job: Job) -> str:
        """Run a job, and return its outcome as `JobObserver.ended` names it."""
        try:
            await self._handle(job)
        except JobLostError:
            return "lost"
        except MemoryChangedError:
            await self._release(job, _CHANGED_RETRY_S, failed=False)
            return "moved"
        except asyncio.CancelledError:
            await self._settle(self._queue.release(job, 0, failed=False))
            raise
        except GatewayError as error:
            # The message is not logged: it may quote the provider, and the provider the user.
            log.warning("a job failed", extra={"kind": job.kind.value, "code": error.code})
            return await self._fail(job)
        except Exception:
            log.exception("a job failed", extra={"kind": job.kind.value})
            return await self._fail(job)
        return "done"

    async def _fail(self, job: Job) -> str:
        failures = job.attempts + 1
        delay_s = retry_after_s(job.kind, failures, self._uniform)
        if delay_s is None:
            log.error(
                "a job failed too often and is dropped",
                extra={"kind": job.kind.value, "failures": failures},
            )
            await self._settle(self._queue.drop(job))
            return "dropped"
        await self._release(job, delay_s, failed=True)
        return "failed"

    async def _release(self, job: Job, delay_s: float, *, failed: bool) -> None:
        """Release a job until it is due again, and run it then."""
        await self._settle(self._queue.release(job, delay_s, failed=failed))
        asyncio.get_running_loop().call_later(delay_s, self.wake)

    async def _settle(self, change: Awaitable[None]) -> None:
        try:
            await change
        except GatewayError as error:
            # The job is free once its lease has expired.
            log.warning("a job could not be released", extra={"error": error.message})
