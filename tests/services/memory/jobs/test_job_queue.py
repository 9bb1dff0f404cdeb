"""The queue itself: who holds a job, for how long, and what that proves."""

import asyncio
import gc
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.inference.v1 import inference_pb2 as pb
from services.common.process.registry import ProcessRegistry
from services.common.storage.database import writing
from services.memory.jobs.job_queue import JobKind, JobLostError, JobQueue
from services.memory.storage.tables import jobs as table
from tests.manual_clock import ManualClock
from tests.services.memory.job_worker import (
    PATIENCE_S,
    MemoryWorker,
    fake_inference,
    hangs,
    jobs_left,
    rows,
)

LEASE_S = 30.0
ONE_DATABASE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)


class Shared:
    """A queue as several processes see it, with jobs about nothing in it."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.clock = ManualClock()
        self.queue = self.process()

    def process(self) -> JobQueue:
        return JobQueue(self.engine, self.clock, LEASE_S)

    async def put(self, count: int = 1, after_s: float = 0) -> None:
        async with writing(self.engine) as connection:
            for number in range(count):
                await self.queue.put(
                    connection, JobKind.FACTS, "ada", None, text=f"text {number}", after_s=after_s
                )


async def test_processes_that_claim_at_once_get_each_job_once(engine: AsyncEngine) -> None:
    shared = Shared(engine)
    await shared.put(20)
    claimed = await asyncio.gather(*(shared.process().claim(7) for _ in range(4)))
    ids = [job.id for jobs in claimed for job in jobs]
    assert len(ids) == len(set(ids))
    assert ids
    while more := await shared.queue.claim(7):
        ids += [job.id for job in more]
    assert len(ids) == len(set(ids)) == 20


async def test_claims_leave_no_garbage_to_collect(engine: AsyncEngine) -> None:
    # The event loop stands still while the collector frees what is in reference cycles.
    shared = Shared(engine)
    await shared.queue.claim(1)
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            assert not await shared.queue.claim(1)
        assert gc.collect() < 20
    finally:
        gc.enable()


async def test_a_job_is_finished_by_who_holds_it_alone(engine: AsyncEngine) -> None:
    shared = Shared(engine)
    await shared.put()
    [first] = await shared.queue.claim(1)
    shared.clock.now_s += LEASE_S
    [second] = await shared.process().claim(1)
    assert not await shared.queue.renew([first])
    with pytest.raises(JobLostError):
        async with writing(engine) as connection:
            await shared.queue.put(connection, JobKind.FACTS, "ada", None, text="undone")
            await shared.queue.finish(connection, first)
    assert len(await jobs_left(engine)) == 1
    async with writing(engine) as connection:
        await shared.queue.finish(connection, second)
    with pytest.raises(JobLostError):
        async with writing(engine) as connection:
            await shared.queue.finish(connection, second)


@ONE_DATABASE
async def test_a_renewed_job_is_held_for_longer(engine: AsyncEngine) -> None:
    shared = Shared(engine)
    await shared.put()
    [job] = await shared.queue.claim(1)
    shared.clock.now_s += LEASE_S - 1
    assert await shared.queue.renew([job])
    shared.clock.now_s += LEASE_S - 1
    assert await shared.queue.claim(1) == []
    shared.clock.now_s += 1
    assert len(await shared.queue.claim(1)) == 1


@ONE_DATABASE
async def test_released_job_keeps_due_time_and_failure_count(engine: AsyncEngine) -> None:
    shared = Shared(engine)
    await shared.put()
    [job] = await shared.queue.claim(1)
    await shared.queue.release(job, 5, failed=True)
    assert await shared.queue.claim(1) == []
    shared.clock.now_s += 5
    [again] = await shared.queue.claim(1)
    assert (again.id, again.attempts) == (job.id, 1)
    await shared.queue.release(job, 0, failed=True)
    assert await shared.queue.claim(1) == [], "who lost a job gives nothing back"


@ONE_DATABASE
async def test_the_oldest_that_is_due_comes_first(engine: AsyncEngine) -> None:
    shared = Shared(engine)
    await shared.put(after_s=2)
    await shared.put(after_s=1)
    shared.clock.now_s += 5
    first, second = [(await shared.queue.claim(1))[0] for _ in range(2)]
    assert first.id > second.id
    assert (await shared.queue.backlog()).jobs == 2


async def test_a_job_is_held_for_as_long_as_it_is_worked_on(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = hangs
        worker = MemoryWorker(engine, ManualClock(), tasks, lease_s=0.1)
        await worker.put(await worker.fill(10))
        async with worker.running_jobs():
            await fake.called.wait()
            before = (await rows(engine, table))[0].ends_at_ms
            worker.clock.now_s += 0.09
            async with asyncio.timeout(PATIENCE_S):
                while (await rows(engine, table))[0].ends_at_ms == before:
                    pass


async def test_work_on_a_job_that_was_taken_away_is_ended(engine: AsyncEngine) -> None:
    ended = asyncio.Event()

    async def noted(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        try:
            return await hangs(request)
        finally:
            ended.set()

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = noted
        clock = ManualClock()
        worker = MemoryWorker(engine, clock, tasks, lease_s=0.1)
        other = MemoryWorker(engine, clock, tasks)
        record = await worker.fill(10)
        await worker.put(record)
        async with worker.running_jobs():
            await fake.called.wait()
            await other.jobs.run_due(record.id, 0)
            await asyncio.wait_for(ended.wait(), 20)
    assert await jobs_left(engine) == [("redo", 1, 5)]


@ONE_DATABASE
async def test_jobs_of_a_process_that_died_are_free_at_once(
    engine: AsyncEngine, tmp_path: Path
) -> None:
    shared = Shared(engine)
    await shared.put(2)
    alive = ProcessRegistry.register(tmp_path)
    theirs = JobQueue(engine, shared.clock, LEASE_S, alive)
    [kept] = await theirs.claim(1)
    dead = ProcessRegistry(tmp_path, "dead", -1)
    [lost] = await JobQueue(engine, shared.clock, LEASE_S, dead).claim(1)
    assert await shared.queue.claim(2) == []
    (tmp_path / "instances" / "dead").touch()
    await alive.reap_dead()
    [again] = await shared.queue.claim(2)
    assert again.id == lost.id != kept.id
    assert await theirs.renew([kept])
    alive.unregister()
