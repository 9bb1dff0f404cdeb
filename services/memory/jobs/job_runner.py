"""Background jobs of memories in one process: enqueueing them, running them, waiting for them.

After `MODEL_ATTEMPTS` failures a summary or fact is made without a model (see `job_handlers`), so
that no memory waits for ever.
"""

import asyncio
from collections.abc import Callable
from zlib import crc32

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import ids
from services.common.process.registry import ProcessRegistry
from services.common.storage.database import write
from services.common.storage.leased_rows import wait_briefly
from services.common.text.texts import elide_middle
from services.memory.jobs.job_handlers import JobHandlers, MemoryChangedError
from services.memory.jobs.job_queue import Job, JobKind, JobLostError, JobQueue
from services.memory.jobs.job_worker import JobObserver, JobWorker
from services.memory.jobs.windows import Windows
from services.memory.profile.sentences import MAX_TEXT
from services.memory.storage.memory_records import MemoryRecord

# Seconds between two polls of a caller that waits for the job of another process.
_WAIT_POLL_S = 0.2


class JobRunner(JobWorker):
    """The background jobs of memories in one process.

    Args:
        engine: the database.
        queue: the queue of that database.
        handlers: handlers of the kinds of jobs.
        observer, poll_s, at_once, uniform, processes: see `JobWorker`.
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
        super().__init__(
            queue,
            handlers.run,
            observer,
            poll_s,
            at_once=at_once,
            uniform=uniform,
            processes=processes,
        )
        self._engine = engine
        self._handlers = handlers

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
