"""Vectors of archived turns."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.inference.v1 import inference_pb2 as pb
from services.memory.jobs.job_queue import JobKind
from services.memory.jobs.windows import Windows
from tests.manual_clock import ManualClock
from tests.services.memory.builders import turn
from tests.services.memory.job_worker import (
    MemoryWorker,
    facts_said,
    fails,
    fake_inference,
    jobs_left,
    short,
)

# What does not go by the database's own ways of locking.
ONE_DATABASE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)


DONE = ("summary", "done")


WINDOWS = Windows(5, 5)


async def test_archived_turns_get_vectors_of_the_embedding_model(engine: AsyncEngine) -> None:
    async with fake_inference(embed="e") as (fake, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(20)
        # Turns that were archived before there was a model for vectors are made up for.
        tasks.roles = tasks.roles.model_copy(update={"embed": ""})
        await worker.jobs.summarise_now(record, Windows(10, 10), 20)
        tasks.roles = tasks.roles.model_copy(update={"embed": "e"})
        async with worker.running_jobs():
            await worker.jobs.summarise_now(await worker.now(record), WINDOWS, 20)
            assert (JobKind.EMBED.value, "done") in [
                await worker.observer.next(),
                await worker.observer.next(),
                await worker.observer.next(),
            ]
        lacking = await worker.stores.archive.without_vectors(
            "ada", record.id, "sandbox/embed", after_turn=0, limit=100
        )
    assert lacking == []
    texts = [text for _, request in fake.asked for text in request.texts]
    assert len(texts) == len(set(texts)) == 15


async def test_replaced_turn_never_gets_the_old_vector(engine: AsyncEngine) -> None:
    rewritten = asyncio.Event()

    async def when_rewritten(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        await rewritten.wait()
        return await short(request)

    async with fake_inference(embed="e") as (fake, tasks):
        fake.act = when_rewritten
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(10)
        await worker.jobs.summarise_now(record, WINDOWS, 20)
        assert await worker.observer.next() == DONE
        async with worker.running_jobs():
            await fake.called.wait()
            record = await worker.rewind_to(await worker.now(record), 8)
            other = turn(5, 8, "something else", "indeed")
            record = await worker.add(record, other, *facts_said(6, 10))
            await worker.jobs.summarise_now(record, WINDOWS, 20)
            assert await worker.observer.next() == DONE
            rewritten.set()
            outcomes = {await worker.observer.next() for _ in range(2)}
        assert outcomes == {("embed", "moved"), ("embed", "done")}
    embedded = [text for _, request in fake.asked for text in request.texts]
    assert any("something else" in text for text in embedded)


@ONE_DATABASE
async def test_embedding_is_given_up_when_the_model_keeps_failing(engine: AsyncEngine) -> None:
    async with fake_inference(embed="e") as (fake, tasks):
        fake.act = fails
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(10)
        await worker.jobs.summarise_now(record, WINDOWS, 20)
        assert await worker.observer.next() == DONE
        async with worker.running_jobs():
            for _ in range(9):
                assert await worker.observer.next() == ("embed", "failed")
                await worker.later(3600)
            assert await worker.observer.next() == ("embed", "dropped")
    assert await jobs_left(engine) == []
    assert len(fake.asked) == 10
