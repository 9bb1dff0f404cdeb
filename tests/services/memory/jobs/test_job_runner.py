"""The order and number of jobs that run, and jobs of processes that stop or die."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import GatewayError, unavailable
from services.memory.jobs.windows import Windows
from tests.manual_clock import ManualClock
from tests.services.memory.job_worker import (
    LEASE_S,
    MemoryWorker,
    fails,
    fake_inference,
    hangs,
    jobs_left,
    short,
    summary_rows,
)

# What does not go by the database's own ways of locking.
ONE_DATABASE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)


DONE = ("summary", "done")


FAILED = ("summary", "failed")


WINDOWS = Windows(5, 5)


async def test_job_of_a_dead_process_is_run_by_another(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (_, tasks):
        clock = ManualClock()
        dead, worker = MemoryWorker(engine, clock, tasks), MemoryWorker(engine, clock, tasks)
        await dead.put(await dead.fill(10))
        assert len(await dead.stores.queue.claim(10)) == 1
        async with worker.running_jobs():
            await worker.later(LEASE_S - 1)
            await worker.observer.looks(2)
            assert worker.observer.outcomes.empty()
            await worker.later(1)
            assert await worker.observer.next() == DONE


@ONE_DATABASE
async def test_stopped_process_releases_its_jobs(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        clock = ManualClock()
        first, second = MemoryWorker(engine, clock, tasks), MemoryWorker(engine, clock, tasks)
        fake.act = hangs
        await first.put(await first.fill(10))
        async with first.running_jobs():
            await fake.called.wait()
        fake.act = short
        async with second.running_jobs():
            assert await second.observer.next() == DONE


@ONE_DATABASE
async def test_summaries_of_one_memory_run_in_order(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = fails
        worker = MemoryWorker(engine, ManualClock(), tasks)
        await worker.put(await worker.fill(15))
        async with worker.running_jobs():
            assert await worker.observer.next() == FAILED
            fake.act = short
            await worker.later(2)
            assert [await worker.observer.next(), await worker.observer.next()] == [DONE, DONE]
    assert await summary_rows(engine) == [(1, 5, False, False), (6, 10, False, False)]


@ONE_DATABASE
async def test_jobs_of_different_memories_run_concurrently(engine: AsyncEngine) -> None:
    async def slow_for_diaries(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        return await (hangs if "house 900" in request.prompt.input else short)(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = slow_for_diaries
        worker = MemoryWorker(engine, ManualClock(), tasks)
        stuck = await worker.fill(14)
        other = await worker.fill(10, "other")
        await worker.put(stuck, Windows(5, 9))
        async with worker.running_jobs():
            await fake.called.wait()
            await worker.jobs.summarise_now(other, WINDOWS, 20)
    assert (await worker.now(other)).summarised == 5
    assert (await worker.now(stuck)).summarised == 0


@ONE_DATABASE
async def test_number_of_running_jobs_is_bounded(engine: AsyncEngine) -> None:
    under_way = most = 0
    two = asyncio.Event()
    go_on = asyncio.Event()

    async def counted(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 2:
            two.set()
        await go_on.wait()
        under_way -= 1
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = counted
        worker = MemoryWorker(engine, ManualClock(), tasks, at_once=2)
        for number in range(5):
            await worker.put(await worker.fill(10, f"diary {number}"))
        async with worker.running_jobs():
            await two.wait()
            await worker.observer.looks(3)
            go_on.set()
            for _ in range(5):
                assert await worker.observer.next() == DONE
    assert most == 2


async def test_results_of_a_batch_are_committed_atomically(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_inference(summarise="m") as (_, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(10)

        async def breaks(*arguments: object) -> None:
            raise unavailable("no archive")

        with monkeypatch.context() as patched:
            patched.setattr(worker.stores.archive, "add", breaks)
            await worker.put(record)
            async with worker.running_jobs():
                assert await worker.observer.next() == FAILED
        assert await summary_rows(engine) == []
        assert (await worker.now(record)).summarised == 0
        assert await jobs_left(engine) == [("summary", 1, 5)]
        await worker.jobs.run_due(record.id, 20)
    assert await summary_rows(engine) == [(1, 5, False, False)]


@ONE_DATABASE
async def test_unavailable_database_is_raised_to_the_waiter(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_inference() as (_, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(10)

        async def breaks(*arguments: object) -> None:
            raise unavailable("no database")

        monkeypatch.setattr(worker.stores.archive, "add", breaks)
        with pytest.raises(GatewayError):
            await worker.jobs.summarise_now(record, WINDOWS, 0)


@ONE_DATABASE
async def test_backlog_is_reported(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = hangs
        worker = MemoryWorker(engine, ManualClock(), tasks)
        await worker.put(await worker.fill(15))
        worker.clock.now_s += 7
        async with worker.running_jobs():
            await fake.called.wait()
        backlog = worker.observer.backlogs[0]
    assert (backlog.jobs, backlog.oldest_s) == (2, 7.0)
