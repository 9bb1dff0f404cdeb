"""Summaries of batches of turns: with a model, without one, and made again."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.inference.v1 import inference_pb2 as pb
from services.memory.jobs.windows import Windows
from tests.manual_clock import ManualClock
from tests.services.memory.job_worker import (
    Act,
    MemoryWorker,
    archived_turns,
    fails,
    fake_inference,
    hangs,
    jobs_left,
    says,
    short,
    summary_rows,
    times_out,
)

# What does not go by the database's own ways of locking.
ONE_DATABASE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)


DONE = ("summary", "done")


FAILED = ("summary", "failed")


WINDOWS = Windows(5, 5)


async def test_a_batch_is_summarised_archived_and_counted_at_once(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(10)
        async with worker.running_jobs():
            await worker.put(record)
            worker.jobs.wake()
            assert await worker.observer.next() == DONE
    summary = await worker.stores.summaries.current(record.id)
    assert (summary.text, summary.last_turn, summary.degraded) == ("A summary.", 5, False)
    assert (await worker.now(record)).summarised == 5
    assert await archived_turns(engine, record) == [1, 2, 3, 4, 5]
    assert await jobs_left(engine) == []
    [(user_id, request)] = fake.asked
    assert (user_id, request.task) == ("ada", pb.TASK_SUMMARISE)
    assert "house 100" in request.prompt.input
    assert "house 500" in request.prompt.input
    assert "house 600" not in request.prompt.input


@ONE_DATABASE
async def test_summary_extends_the_previous_one_by_new_turns(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(15)
        await worker.jobs.summarise_now(record, WINDOWS, 20)
    assert await summary_rows(engine) == [(1, 5, False, False), (6, 10, False, False)]
    first, second = (request.prompt.input for _, request in fake.asked)
    assert "A summary." not in first
    assert "A summary." in second
    assert "house 500" not in second
    assert await archived_turns(engine, record) == list(range(1, 11))


@ONE_DATABASE
async def test_without_a_model_no_summary_is_degraded(engine: AsyncEngine) -> None:
    async with fake_inference() as (fake, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(10)
        await worker.jobs.summarise_now(record, WINDOWS, 20)
    summary = await worker.stores.summaries.current(record.id)
    assert "I own house 100" in summary.text
    assert not summary.degraded
    assert not fake.asked
    assert await jobs_left(engine) == []


@pytest.mark.parametrize(
    ("storage", "act"),
    [
        ("sqlite", fails),
        ("postgresql", fails),
        ("sqlite", times_out),
        ("sqlite", says(" \n")),
        ("sqlite", says("<think>hm, what")),
    ],
    indirect=["storage"],
)
async def test_summary_is_degraded_after_three_failures_then_redone(
    engine: AsyncEngine, act: Act
) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = act
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(10)
        await worker.put(record)
        async with worker.running_jobs():
            for _ in range(2):
                assert await worker.observer.next() == FAILED
                await worker.later(10)
            # Without the model there is nothing to wait for.
            assert [await worker.observer.next(), await worker.observer.next()] == [FAILED, DONE]
            summary = await worker.stores.summaries.current(record.id)
            assert summary.degraded
            assert "I own house 300" in summary.text
            assert len(fake.asked) == 3
            assert await jobs_left(engine) == [("redo", 1, 5)]

            fake.act = short
            await worker.later(600)
            assert await worker.observer.next() == ("redo", "done")
    summary = await worker.stores.summaries.current(record.id)
    assert (summary.text, summary.degraded, summary.last_turn) == ("A summary.", False, 5)
    assert await jobs_left(engine) == []
    assert "house 300" in fake.asked[-1][1].prompt.input


@ONE_DATABASE
async def test_failed_job_is_not_retried_early(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = fails
        worker = MemoryWorker(engine, ManualClock(), tasks)
        await worker.put(await worker.fill(10))
        async with worker.running_jobs():
            assert await worker.observer.next() == FAILED
            await worker.later(1.9)
            await worker.observer.looks(3)
    assert len(fake.asked) == 1


@ONE_DATABASE
async def test_redone_summary_does_not_replace_a_later_good_one(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(15)
        fake.act = hangs
        await worker.jobs.summarise_now(record, Windows(10, 5), 0)
        fake.act = short
        await worker.jobs.summarise_now(await worker.now(record), WINDOWS, 20)
        asked = len(fake.asked)
        async with worker.running_jobs():
            await worker.later(600)
            outcomes = [await worker.observer.next() for _ in range(3)]
    assert outcomes == [("summary", "taken_over"), DONE, ("redo", "done")]
    assert len(fake.asked) == asked
    assert (await worker.stores.summaries.current(record.id)).last_turn == 10


@ONE_DATABASE
async def test_next_summary_builds_on_one_redone_meanwhile(engine: AsyncEngine) -> None:
    next_is_asked, redone = asyncio.Event(), asyncio.Event()

    async def after_the_redone(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        if "<summary>" not in request.prompt.input:
            await next_is_asked.wait()
            return await says("Better.")(request)
        next_is_asked.set()
        await redone.wait()
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = hangs
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(15)
        await worker.jobs.summarise_now(record, Windows(10, 5), 0)
        assert await worker.observer.next() == ("summary", "taken_over")
        fake.act = after_the_redone
        await worker.put(await worker.now(record))
        async with worker.running_jobs():
            await worker.later(600)
            assert await worker.observer.next() == ("redo", "done")
            redone.set()
            assert await worker.observer.next() == ("summary", "moved")
            await worker.later(1)
            assert await worker.observer.next() == DONE
    assert "Better." in fake.asked[-1][1].prompt.input
    assert await summary_rows(engine) == [(1, 5, False, False), (6, 10, False, False)]
