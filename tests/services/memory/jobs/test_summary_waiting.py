"""Callers that wait for summaries, and summaries that are due more than once."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.inference.v1 import inference_pb2 as pb
from services.memory.jobs.windows import Windows
from tests.manual_clock import ManualClock
from tests.services.memory.job_worker import (
    MemoryWorker,
    archived_turns,
    fake_inference,
    hangs,
    jobs_left,
    short,
    summary_rows,
)

# What does not go by the database's own ways of locking.
ONE_DATABASE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)


WINDOWS = Windows(5, 5)


async def test_waiting_too_long_gives_a_summary_without_the_model(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = hangs
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(15)
        await worker.jobs.summarise_now(record, WINDOWS, 0.05)
        current = await worker.now(record)
        await worker.jobs.stop()
    assert WINDOWS.view(current.turns, current.summarised).due is None
    assert await summary_rows(engine) == [(1, 5, True, False), (6, 10, True, False)]
    assert "I own house 100" in (await worker.stores.summaries.current(record.id)).text
    assert await jobs_left(engine) == [("redo", 1, 5), ("redo", 6, 10)]


async def test_late_model_answer_changes_nothing(engine: AsyncEngine) -> None:
    answers = asyncio.Event()

    async def late(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        await answers.wait()
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = late
        clock = ManualClock()
        slow, waiting = MemoryWorker(engine, clock, tasks), MemoryWorker(engine, clock, tasks)
        record = await slow.fill(10)
        await slow.put(record)
        async with slow.running_jobs():
            await fake.called.wait()
            # Another process takes the job away from the one that is still at it.
            await waiting.jobs.run_due(record.id, 0)
            before = await slow.stores.summaries.current(record.id)
            answers.set()
            assert await slow.observer.next() == ("summary", "lost")
    assert await slow.stores.summaries.current(record.id) == before
    assert before.degraded
    assert await archived_turns(engine, record) == [1, 2, 3, 4, 5]


@ONE_DATABASE
async def test_waiter_notices_a_job_done_by_another_process(engine: AsyncEngine) -> None:
    answers = asyncio.Event()

    async def when_told(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        await answers.wait()
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = when_told
        clock = ManualClock()
        first, second = MemoryWorker(engine, clock, tasks), MemoryWorker(engine, clock, tasks)
        record = await first.fill(10)
        await first.put(record)
        async with first.running_jobs():
            await fake.called.wait()
            waiting = asyncio.create_task(second.jobs.run_due(record.id, 20))
            answers.set()
            await waiting
    assert await summary_rows(engine) == [(1, 5, False, False)]
    assert len(fake.asked) == 1


async def test_concurrent_waiters_and_workers_make_one_summary(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        clock = ManualClock()
        workers = [MemoryWorker(engine, clock, tasks) for _ in range(3)]
        record = await workers[0].fill(20)
        async with workers[0].running_jobs(), workers[1].running_jobs(), workers[2].running_jobs():
            await asyncio.gather(
                *(worker.jobs.summarise_now(record, WINDOWS, 20) for worker in workers)
            )
    assert await summary_rows(engine) == [
        (1, 5, False, False),
        (6, 10, False, False),
        (11, 15, False, False),
    ]
    assert await archived_turns(engine, record) == list(range(1, 16))
    assert len(fake.asked) == 3


async def test_duplicate_job_is_put_once(engine: AsyncEngine) -> None:
    async with fake_inference() as (_, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(16)
        await worker.put(record)
        await worker.put(record)
        assert await jobs_left(engine) == [("summary", 1, 5), ("summary", 6, 10)]


@ONE_DATABASE
async def test_changed_windows_put_no_overlapping_summaries(engine: AsyncEngine) -> None:
    async with fake_inference() as (_, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(16)
        await worker.put(record, Windows(5, 6))
        await worker.put(record, Windows(5, 5))
        await worker.put(record, Windows(5, 11))
        await worker.jobs.run_due(record.id, 20)
    assert await summary_rows(engine) == [
        (1, 5, False, False),
        (6, 6, False, False),
        (7, 10, False, False),
        (11, 11, False, False),
    ]
    assert await archived_turns(engine, record) == list(range(1, 12))
    assert (await worker.now(record)).summarised == 11
