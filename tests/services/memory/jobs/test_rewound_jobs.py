"""Jobs on turns that are rewound or deleted meanwhile."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.inference.v1 import inference_pb2 as pb
from services.memory.jobs.windows import Windows
from tests.manual_clock import ManualClock
from tests.services.memory.job_worker import (
    MemoryWorker,
    archived_turns,
    facts_said,
    fake_inference,
    hangs,
    jobs_left,
    short,
    summary_rows,
)

# What does not go by the database's own ways of locking.
ONE_DATABASE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)


DONE = ("summary", "done")


WINDOWS = Windows(5, 5)


async def test_turns_rewound_during_the_job_get_no_summary(engine: AsyncEngine) -> None:
    rewound = asyncio.Event()

    async def when_rewound(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        await rewound.wait()
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = when_rewound
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(10)
        await worker.put(record)
        async with worker.running_jobs():
            await fake.called.wait()
            await worker.rewind_to(record, 8)
            rewound.set()
            assert (await worker.observer.next())[1] in ("lost", "moved")
            assert await jobs_left(engine) == []
    assert await summary_rows(engine) == []
    assert await archived_turns(engine, record) == []
    assert (await worker.now(record)).summarised == 0


@ONE_DATABASE
async def test_summary_is_retried_after_a_rewind_of_later_turns(engine: AsyncEngine) -> None:
    rewound = asyncio.Event()

    async def when_rewound(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        await rewound.wait()
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = when_rewound
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(12)
        await worker.put(record)
        async with worker.running_jobs():
            await fake.called.wait()
            await worker.rewind_to(record, 20)
            rewound.set()
            assert await worker.observer.next() == ("summary", "moved")
            await worker.later(1)
            assert await worker.observer.next() == DONE
    assert await summary_rows(engine) == [(1, 5, False, False)]


async def test_rewind_withdraws_summaries_of_removed_turns(engine: AsyncEngine) -> None:
    async with fake_inference() as (_, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(15)
        await worker.jobs.summarise_now(record, WINDOWS, 20)
        record = await worker.rewind_to(await worker.now(record), 14)
        assert (record.turns, record.summarised) == (7, 5)
        assert await summary_rows(engine) == [(1, 5, False, False), (6, 10, False, True)]
        # It goes on, and what is summarised again is archived once.
        record = await worker.add(record, *facts_said(8, 15))
        await worker.jobs.summarise_now(record, WINDOWS, 20)
    assert await archived_turns(engine, record) == list(range(1, 11))
    assert (await worker.stores.summaries.current(record.id)).last_turn == 10


async def test_deleted_memory_leaves_no_jobs(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m", embed="e") as (fake, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(15)
        fake.act = hangs
        await worker.jobs.summarise_now(record, WINDOWS, 0)
        await worker.put_facts("I live in Basel.", record, 15)
        assert {kind for kind, _, _ in await jobs_left(engine)} == {"redo", "embed", "facts"}
        async with (
            worker.locks.write_lock(record) as lock,
            worker.locks.committing(lock) as (connection, stored),
        ):
            await worker.stores.delete(connection, stored)
    assert await jobs_left(engine) == []
    assert await summary_rows(engine) == []
