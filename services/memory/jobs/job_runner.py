"""Background jobs of one process: enqueueing jobs, running them, waiting for them.

Every process runs a few jobs at a time: its own at once, and those of other processes when it polls
the queue. A failed job is retried with growing delays. After `MODEL_ATTEMPTS` failures a summary or
fact is made without a model (see `job_handlers`), so that no memory waits for ever.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol
from zlib import crc32

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import ids
from services.common.errors import GatewayError
from services.common.process import logs
from services.common.process.registry import ProcessRegistry
from services.common.storage.database import write
from services.common.storage.leased_rows import LeaseRenewer, wait_briefly
from services.common.text.texts import elide_middle
from services.memory.jobs.job_handlers import JobHandlers, MemoryChangedError
from services.memory.jobs.job_queue import Backlog, Job, JobKind, JobLostError, JobQueue
from services.memory.jobs.retries import retry_after_s
from services.memory.jobs.windows import Windows
from services.memory.profile.sentences import MAX_TEXT
from services.memory.storage.memory_records import MemoryRecord

# Seconds until a job whose memory changed meanwhile is run again.
_CHANGED_RETRY_S = 0.2
# Seconds between two polls of a caller that waits for the job of another process.
_WAIT_POLL_S = 0.2
# How many times longer the interval between two polls is while no job is due.
_QUIET = 5

log = logging.getLogger(__name__)


class JobObserver(Protocol):
    """Observer of the job queue and of ended jobs, for metrics."""

    def backlog(self, backlog: Backlog) -> None:
        """Record the jobs that are due."""

    def ended(self, kind: JobKind, outcome: str) -> None:
        """Record an ended job: `done`, `failed`, `taken_over`, `moved`, `lost` or `dropped`."""


class JobRunner:
    """The background jobs of one process.

    Args:
        engine: the database.
        queue: the queue of that database.
        handlers: handlers of the kinds of jobs.
        observer: the metrics of jobs.
        poll_s: seconds between two polls for jobs of other processes, on average; while none is
            due, five times as many.
        at_once: maximum number of jobs that run at a time.
        uniform: random source for jitter.
        processes: the processes of this machine; jobs of dead ones are released.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        queue: JobQueue,
        handlers: JobHandlers,
        observer: JobObserver,
        poll_s: float,
        *,
        at_once: int = 4,
        uniform: Callable[[float, float], float] = ids.uniform,
        processes: ProcessRegistry | None = None,
    ) -> None:
        self._processes = processes
        self._engine = engine
        self._queue = queue
        self._handlers = handlers
        self._observer = observer
        self._poll_s = poll_s
        self._at_once = at_once
        self._uniform = uniform
        self._renewer = LeaseRenewer(self._queue.renew, self._queue.lease_s)
        self._woken = asyncio.Event()
        self._ended = asyncio.Event()
        self._running: dict[Job, asyncio.Task[None]] = {}

    async def put_summary(
        self, connection: AsyncConnection, record: MemoryRecord, windows: Windows
    ) -> bool:
        """Enqueue the due summaries of a memory, one job for each batch of turns.

        Return whether there are any: after the commit, `wake` runs them at once.
        """
        pending = windows.view(record.turns, record.summarised).pending
        begins = range(0, len(pending) - windows.summary + 1, windows.summary)
        for begin in begins:
            batch = pending[begin : begin + windows.summary]
            about = (record.owner_id, record.id, (batch[0], batch[-1]))
            await self._queue.put(connection, JobKind.SUMMARY, *about, variant=record.epoch)
        return bool(begins)

    async def put_facts(
        self,
        connection: AsyncConnection,
        owner_id: str,
        text: str,
        entity_id: str | None = None,
        turn: int = 0,
    ) -> bool:
        """Enqueue the extraction of facts from a user's text, unless the text is blank.

        `turn` is the number of the text's turn in the memory, if any. Return whether there is a
        job: after the commit, `wake` runs it at once.
        """
        # PostgreSQL refuses NULs.
        if text := elide_middle(text, MAX_TEXT).replace("\0", "\ufffd").strip():
            await self._queue.put(
                connection,
                JobKind.FACTS,
                owner_id,
                entity_id,
                (turn, turn),
                # A turn can grow: its new text is another job.
                variant=crc32(text.encode()),
                text=text,
            )
        return bool(text)

    async def put_facts_alone(self, owner_id: str, text: str) -> None:
        """Like `put_facts`, for text outside of any memory, in a transaction of its own."""
        if text.strip():
            await write(self._engine, lambda connection: self.put_facts(connection, owner_id, text))

    def wake(self) -> None:
        """Poll the queue now."""
        self._woken.set()

    async def summarise_now(self, record: MemoryRecord, windows: Windows, timeout_s: float) -> None:
        """Make the due summaries of a memory, and wait for them.

        Those that are not made within `timeout_s` are made without a model.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        await write(self._engine, lambda connection: self.put_summary(connection, record, windows))
        await self.run_due(record.id, timeout_s)

    async def run_due(self, entity_id: str, timeout_s: float) -> None:
        """Run the queued summaries of a memory, and wait for them as `summarise_now` does.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        ended = self._ended
        waits = await self._queue.promote(entity_id)
        while waits and (left := deadline - clock()) > 0:
            for job in await self._queue.claim(1, entity_id):
                self._start(job)
            await wait_briefly(ended, min(left, _WAIT_POLL_S))
            ended = self._ended
            waits = await self._queue.has_summaries(entity_id)
        while waits and (stolen := await self._queue.steal(entity_id)) is not None:
            await self._take_over(stolen)

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

    async def _take_over(self, job: Job) -> None:
        """Make a summary without a model, in place of the process that works on it."""
        for other, task in self._running.items():
            if other.id == job.id:
                task.cancel()
        try:
            await self._handlers.summarise(job, by_model=False)
        except (JobLostError, MemoryChangedError):
            return  # the caller checks the queue again
        self._observer.ended(job.kind, "taken_over")

    async def _run_job(self, job: Job) -> None:
        logs.request_id.set(job.id)
        self._observer.ended(job.kind, await self._outcome(job))

    async def _outcome(self, job: Job) -> str:
        """Run a job, and return its outcome as `JobObserver.ended` names it."""
        try:
            await self._handlers.run(job)
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
