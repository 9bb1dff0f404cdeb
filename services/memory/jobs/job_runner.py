"""Background work on memories: who puts jobs there, who does them, who waits for them.

Every process works: it takes jobs that are due, its own at once and those of others when
it looks, and does some at a time. A job that fails is tried again, later each time. What
a model cannot do in some attempts is done without it (see `duties`), so that no memory
is ever left waiting.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol
from zlib import crc32

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import ids, logs
from services.common.database import writing
from services.common.errors import GatewayError
from services.common.instances import Instances
from services.memory.jobs.job_handlers import JobHandlers, MemoryChangedError
from services.memory.jobs.job_queue import Backlog, Job, JobKind, JobLostError
from services.memory.jobs.retries import retry_after_s
from services.memory.jobs.stores import Stores
from services.memory.jobs.task_client import TaskClient
from services.memory.profile.sentences import MAX_TEXT
from services.memory.storage.memory_records import MemoryRecord
from services.memory.transcript.windows import Windows

# Of a lease, the part after which it is renewed: two renewals may fail.
_RENEWED_AFTER = 0.3
# When a job is done anew whose memory has changed meanwhile.
_MOVED_S = 0.2
# How often somebody who waits for the job of another process looks.
_WATCH_S = 0.2

log = logging.getLogger(__name__)


class JobObserver(Protocol):
    """What is told of background work, for metrics."""

    def backlog(self, backlog: Backlog) -> None:
        """Take note of how much there is to do."""

    def ended(self, kind: JobKind, outcome: str) -> None:
        """Take note of a job: `done`, `failed`, `taken_over`, `moved`, `lost` or `dropped`."""


class JobRunner:
    """The background work of one process.

    Args:
        engine: the database.
        stores: what is kept there, the queue among it.
        roles: the models.
        watch: is told of the work.
        poll_s: seconds between two looks for jobs of other processes, on average.
        at_once: jobs that are done at a time.
        uniform: throws the dice for jitter.
        instances: the processes of this machine; what dead ones held is freed.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        stores: Stores,
        roles: TaskClient,
        watch: JobObserver,
        poll_s: float,
        *,
        at_once: int = 4,
        uniform: Callable[[float, float], float] = ids.uniform,
        instances: Instances | None = None,
    ) -> None:
        self._instances = instances
        self._engine = engine
        self._queue = stores.queue
        self._duties = JobHandlers(engine, stores, roles)
        self._watch = watch
        self._poll_s = poll_s
        self._at_once = at_once
        self._uniform = uniform
        self._woken = asyncio.Event()
        self._ended = asyncio.Event()
        self._working: dict[Job, asyncio.Task[None]] = {}

    async def put_summary(
        self, connection: AsyncConnection, record: MemoryRecord, windows: Windows
    ) -> None:
        """Have summarised what is due of a memory, batch by batch; nothing is put there twice.

        After the commit, `wake` has it done at once.
        """
        pending = windows.view(record.turns, record.summarised).pending
        for begin in range(0, len(pending) - windows.summary + 1, windows.summary):
            batch = pending[begin : begin + windows.summary]
            await self._queue.put(
                connection,
                JobKind.SUMMARY,
                record.owner_id,
                record.id,
                (batch[0], batch[-1]),
                variant=record.epoch,
            )

    async def put_facts(
        self,
        connection: AsyncConnection,
        owner_id: str,
        text: str,
        entity_id: str | None = None,
        turn: int = 0,
    ) -> None:
        """Have found what a user says of themselves in a text.

        After the commit, `wake` has it done at once.

        Args:
            connection: the caller's transaction.
            owner_id: the user.
            text: the user's own words, and nobody else's; blank for none.
            entity_id: the memory that it was said in, if any.
            turn: number of the turn there.
        """
        text = _storable_text(text)
        if text:
            await self._queue.put(
                connection,
                JobKind.FACTS,
                owner_id,
                entity_id,
                (turn, turn),
                # A turn can grow.
                variant=crc32(text.encode()),
                text=text,
            )

    async def put_facts_alone(self, owner_id: str, text: str) -> None:
        """Do as `put_facts`, in a transaction of its own and outside of any memory."""
        if text.strip():
            async with writing(self._engine) as connection:
                await self.put_facts(connection, owner_id, text)

    def wake(self) -> None:
        """Look for jobs now: some were put there."""
        self._woken.set()

    async def summarise_now(self, record: MemoryRecord, windows: Windows, timeout_s: float) -> None:
        """Have summarised what is due of a memory, and wait for it.

        What is not done in time is done without a model.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        async with writing(self._engine) as connection:
            await self.put_summary(connection, record, windows)
        await self.run_due(record.id, timeout_s)

    async def run_due(self, entity_id: str, timeout_s: float) -> None:
        """Do what is to be summarised of a memory now, and wait for it, as `summarise_now`.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        ended = self._ended
        waits = await self._queue.promote(entity_id)
        while waits and (left := deadline - clock()) > 0:
            for job in await self._queue.claim(1, entity_id):
                self._begin(job)
            await _wait_for(min(left, _WATCH_S), ended)
            ended = self._ended
            waits = await self._queue.waits(entity_id)
        while waits and (taken := await self._queue.steal(entity_id)) is not None:
            await self._take_over(taken)

    async def run(self) -> None:
        """Work for ever; what does not work now is tried again later."""
        while True:
            self._woken.clear()
            try:
                await self._look()
            except GatewayError as error:
                log.warning("no look at the jobs", extra={"error": error.message})
            except Exception:
                log.exception("a look at the jobs failed")
            await _wait_for(self._poll_s * self._uniform(0.5, 1.5), self._woken)

    async def stop(self) -> None:
        """Leave what is being done to other processes, at once."""
        tasks = list(self._working.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        if self._instances:
            await self._instances.bury()
        if (free := self._at_once - len(self._working)) > 0:
            for job in await self._queue.claim(free):
                self._begin(job)
        self._watch.backlog(await self._queue.backlog())

    def _begin(self, job: Job) -> None:
        task = asyncio.create_task(self._work(job), name=job.id)
        self._working[job] = task
        task.add_done_callback(lambda _: self._over(job))

    def _over(self, job: Job) -> None:
        del self._working[job]
        ended, self._ended = self._ended, asyncio.Event()
        ended.set()
        self.wake()

    async def _take_over(self, job: Job) -> None:
        """Do a summary without a model, in place of whoever is at it."""
        for other, task in self._working.items():
            if other.id == job.id:
                task.cancel()
        try:
            await self._duties.summarise(job, by_model=False)
        except (JobLostError, MemoryChangedError):
            return  # whoever waits looks again
        self._watch.ended(job.kind, "taken_over")

    async def _work(self, job: Job) -> None:
        logs.request_id.set(job.id)
        work = asyncio.current_task()
        assert work is not None
        renewing = asyncio.create_task(self._keep(job, work))
        try:
            self._watch.ended(job.kind, await self._outcome(job))
        finally:
            renewing.cancel()

    async def _keep(self, job: Job, work: asyncio.Task[None]) -> None:
        """Renew a job for as long as it is worked on; end the work once it is another's."""
        while True:
            await asyncio.sleep(self._queue.lease_s * _RENEWED_AFTER)
            try:
                if not await self._queue.renew(job):
                    work.cancel()
                    return
            except GatewayError as error:
                log.warning("a job was not renewed", extra={"error": error.message})

    async def _outcome(self, job: Job) -> str:
        """Do a job, whatever becomes of it; return what did, in a word."""
        try:
            await self._duties.do(job)
        except JobLostError:
            return "lost"
        except MemoryChangedError:
            await self._give_back(job, _MOVED_S, failed=False)
            return "moved"
        except asyncio.CancelledError:
            await self._give_back(job, 0, failed=False)
            raise
        except GatewayError as error:
            # Its text may tell what the provider said of the user's.
            log.warning("a job failed", extra={"kind": job.kind.value, "code": error.code})
            return await self._failed(job)
        except Exception:
            log.exception("a job failed", extra={"kind": job.kind.value})
            return await self._failed(job)
        return "done"

    async def _failed(self, job: Job) -> str:
        failures = job.attempts + 1
        delay_s = retry_after_s(job.kind, failures, self._uniform)
        if delay_s is None:
            log.error("a job is given up", extra={"kind": job.kind.value, "failures": failures})
            await self._drop(job)
            return "dropped"
        await self._give_back(job, delay_s, failed=True)
        return "failed"

    async def _drop(self, job: Job) -> None:
        try:
            await self._queue.drop(job)
        except GatewayError as error:
            log.warning("a job was not dropped", extra={"error": error.message})

    async def _give_back(self, job: Job, after_s: float, *, failed: bool) -> None:
        try:
            await self._queue.give_back(job, after_s, failed=failed)
        except GatewayError as error:
            # It is free once its lease has ended.
            log.warning("a job was not given back", extra={"error": error.message})


async def _wait_for(seconds: float, event: asyncio.Event) -> None:
    """Wait for an event, but no longer than so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _storable_text(text: str) -> str:
    """Return a text as it is kept: only so long, and without what PostgreSQL keeps not."""
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n…\n{text[-MAX_TEXT // 2 :]}"
    return text.replace("\0", "\ufffd").strip()
