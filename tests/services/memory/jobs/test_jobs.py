"""Background work on both databases, with a model that works, fails, hangs or says nothing."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import GatewayError, unavailable
from services.memory.jobs.job_queue import JobKind
from services.memory.transcript.windows import Windows
from tests.services.memory.builders import Clock, turn
from tests.services.memory.job_worker import (
    LEASE_S,
    Act,
    Worker,
    archived_turns,
    facts_said,
    fails,
    fake_inference,
    hangs,
    jobs_left,
    says,
    short,
    summary_rows,
)

# What does not go by the database's own ways of locking.
ONE_DATABASE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
DONE = ("summary", "done")
FAILED = ("summary", "failed")
WINDOWS = Windows(5, 5)


async def test_a_batch_is_summarised_archived_and_counted_at_once(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(10)
        async with worker.working():
            await worker.put(record)
            worker.jobs.wake()
            assert await worker.noted.next() == DONE
    summary = await worker.stores.summaries.current(record.id)
    assert (summary.text, summary.last_turn, summary.degraded) == ("A summary.", 5, False)
    assert (await worker.now(record)).summarised == 5
    assert await archived_turns(engine, record) == [1, 2, 3, 4, 5]
    assert await jobs_left(engine) == []
    [(user_id, request)] = fake.asked
    assert (user_id, request.role) == ("ada", pb.ROLE_SUMMARISE)
    assert "house 100" in request.prompt.input
    assert "house 500" in request.prompt.input
    assert "house 600" not in request.prompt.input


@ONE_DATABASE
async def test_the_next_summary_is_made_of_the_one_before_and_the_new_turns(
    engine: AsyncEngine,
) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(15)
        await worker.jobs.summarise_now(record, WINDOWS, 20)
    assert await summary_rows(engine) == [(1, 5, False, False), (6, 10, False, False)]
    first, second = (request.prompt.input for _, request in fake.asked)
    assert "A summary." not in first
    assert "A summary." in second
    assert "house 500" not in second
    assert await archived_turns(engine, record) == list(range(1, 11))


@ONE_DATABASE
async def test_without_a_model_nothing_is_asked_and_nothing_is_degraded(
    engine: AsyncEngine,
) -> None:
    async with fake_inference() as (fake, tasks):
        worker = Worker(engine, Clock(), tasks)
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
        ("sqlite", hangs),
        ("sqlite", says(" \n")),
        ("sqlite", says("<think>hm, what")),
    ],
    indirect=["storage"],
)
async def test_a_model_that_fails_three_times_is_replaced_and_asked_again_later(
    engine: AsyncEngine, act: Act
) -> None:
    async with fake_inference(timeout_s=0.2 if act is hangs else 20, summarise="m") as (
        fake,
        tasks,
    ):
        fake.act = act
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(10)
        await worker.put(record)
        async with worker.working():
            for _ in range(2):
                assert await worker.noted.next() == FAILED
                await worker.later(10)
            # Without the model there is nothing to wait for.
            assert [await worker.noted.next(), await worker.noted.next()] == [FAILED, DONE]
            summary = await worker.stores.summaries.current(record.id)
            assert summary.degraded
            assert "I own house 300" in summary.text
            assert len(fake.asked) == 3
            assert await jobs_left(engine) == [("redo", 1, 5)]

            fake.act = short
            await worker.later(600)
            assert await worker.noted.next() == ("redo", "done")
    summary = await worker.stores.summaries.current(record.id)
    assert (summary.text, summary.degraded, summary.last_turn) == ("A summary.", False, 5)
    assert await jobs_left(engine) == []
    assert "house 300" in fake.asked[-1][1].prompt.input


@ONE_DATABASE
async def test_a_job_is_not_tried_again_before_its_time(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = fails
        worker = Worker(engine, Clock(), tasks)
        await worker.put(await worker.fill(10))
        async with worker.working():
            assert await worker.noted.next() == FAILED
            await worker.later(1.9)
            await worker.noted.looks(3)
    assert len(fake.asked) == 1


@ONE_DATABASE
async def test_a_redone_summary_does_not_replace_a_better_one_that_followed(
    engine: AsyncEngine,
) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(15)
        fake.act = hangs
        await worker.jobs.summarise_now(record, Windows(10, 5), 0)
        fake.act = short
        await worker.jobs.summarise_now(await worker.now(record), WINDOWS, 20)
        asked = len(fake.asked)
        async with worker.working():
            await worker.later(600)
            told = [await worker.noted.next() for _ in range(3)]
    assert told == [("summary", "taken_over"), DONE, ("redo", "done")]
    assert len(fake.asked) == asked
    assert (await worker.stores.summaries.current(record.id)).last_turn == 10


@ONE_DATABASE
async def test_a_summary_that_is_redone_meanwhile_goes_into_the_next_one(
    engine: AsyncEngine,
) -> None:
    next_is_asked, redone = asyncio.Event(), asyncio.Event()

    async def after_the_redone(request: pb.RunRoleRequest) -> pb.RunRoleResponse:
        if "<summary>" not in request.prompt.input:
            await next_is_asked.wait()
            return await says("Better.")(request)
        next_is_asked.set()
        await redone.wait()
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = hangs
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(15)
        await worker.jobs.summarise_now(record, Windows(10, 5), 0)
        assert await worker.noted.next() == ("summary", "taken_over")
        fake.act = after_the_redone
        await worker.put(await worker.now(record))
        async with worker.working():
            await worker.later(600)
            assert await worker.noted.next() == ("redo", "done")
            redone.set()
            assert await worker.noted.next() == ("summary", "moved")
            await worker.later(1)
            assert await worker.noted.next() == DONE
    assert "Better." in fake.asked[-1][1].prompt.input
    assert await summary_rows(engine) == [(1, 5, False, False), (6, 10, False, False)]


async def test_who_waits_too_long_gets_the_summary_without_the_model(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = hangs
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(15)
        await worker.jobs.summarise_now(record, WINDOWS, 0.05)
        current = await worker.now(record)
        await worker.jobs.stop()
    assert WINDOWS.view(current.turns, current.summarised).due is None
    assert await summary_rows(engine) == [(1, 5, True, False), (6, 10, True, False)]
    assert "I own house 100" in (await worker.stores.summaries.current(record.id)).text
    assert await jobs_left(engine) == [("redo", 1, 5), ("redo", 6, 10)]


async def test_an_answer_that_comes_too_late_changes_nothing(engine: AsyncEngine) -> None:
    answers = asyncio.Event()

    async def late(request: pb.RunRoleRequest) -> pb.RunRoleResponse:
        await answers.wait()
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = late
        clock = Clock()
        slow, waiting = Worker(engine, clock, tasks), Worker(engine, clock, tasks)
        record = await slow.fill(10)
        await slow.put(record)
        async with slow.working():
            await fake.called.wait()
            # Another process takes the job away from the one that is still at it.
            await waiting.jobs.run_due(record.id, 0)
            before = await slow.stores.summaries.current(record.id)
            answers.set()
            assert await slow.noted.next() == ("summary", "lost")
    assert await slow.stores.summaries.current(record.id) == before
    assert before.degraded
    assert await archived_turns(engine, record) == [1, 2, 3, 4, 5]


@ONE_DATABASE
async def test_who_waits_is_told_when_another_process_is_done(engine: AsyncEngine) -> None:
    answers = asyncio.Event()

    async def when_told(request: pb.RunRoleRequest) -> pb.RunRoleResponse:
        await answers.wait()
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = when_told
        clock = Clock()
        first, second = Worker(engine, clock, tasks), Worker(engine, clock, tasks)
        record = await first.fill(10)
        await first.put(record)
        async with first.working():
            await fake.called.wait()
            waiting = asyncio.create_task(second.jobs.run_due(record.id, 20))
            answers.set()
            await waiting
    assert await summary_rows(engine) == [(1, 5, False, False)]
    assert len(fake.asked) == 1


async def test_several_who_wait_and_work_at_once_make_one_summary(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        clock = Clock()
        workers = [Worker(engine, clock, tasks) for _ in range(3)]
        record = await workers[0].fill(20)
        async with workers[0].working(), workers[1].working(), workers[2].working():
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


async def test_what_is_due_twice_is_one_job(engine: AsyncEngine) -> None:
    async with fake_inference() as (_, tasks):
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(16)
        await worker.put(record)
        await worker.put(record)
        assert await jobs_left(engine) == [("summary", 1, 5), ("summary", 6, 10)]


@ONE_DATABASE
async def test_windows_that_change_summarise_nothing_twice(engine: AsyncEngine) -> None:
    async with fake_inference() as (_, tasks):
        worker = Worker(engine, Clock(), tasks)
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


async def test_the_job_of_a_process_that_died_is_done_by_another(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (_, tasks):
        clock = Clock()
        dead, worker = Worker(engine, clock, tasks), Worker(engine, clock, tasks)
        await dead.put(await dead.fill(10))
        assert len(await dead.stores.queue.claim(10)) == 1
        async with worker.working():
            await worker.later(LEASE_S - 1)
            await worker.noted.looks(2)
            assert worker.noted.outcomes.empty()
            await worker.later(1)
            assert await worker.noted.next() == DONE


@ONE_DATABASE
async def test_a_stopped_process_gives_its_jobs_back_at_once(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        clock = Clock()
        first, second = Worker(engine, clock, tasks), Worker(engine, clock, tasks)
        fake.act = hangs
        await first.put(await first.fill(10))
        async with first.working():
            await fake.called.wait()
        fake.act = short
        async with second.working():
            assert await second.noted.next() == DONE


@ONE_DATABASE
async def test_later_turns_wait_for_earlier_ones(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = fails
        worker = Worker(engine, Clock(), tasks)
        await worker.put(await worker.fill(15))
        async with worker.working():
            assert await worker.noted.next() == FAILED
            fake.act = short
            await worker.later(2)
            assert [await worker.noted.next(), await worker.noted.next()] == [DONE, DONE]
    assert await summary_rows(engine) == [(1, 5, False, False), (6, 10, False, False)]


@ONE_DATABASE
async def test_memories_do_not_wait_for_each_other(engine: AsyncEngine) -> None:
    async def slow_for_diaries(request: pb.RunRoleRequest) -> pb.RunRoleResponse:
        return await (hangs if "house 900" in request.prompt.input else short)(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = slow_for_diaries
        worker = Worker(engine, Clock(), tasks)
        stuck = await worker.fill(14)
        other = await worker.fill(10, "other")
        await worker.put(stuck, Windows(5, 9))
        async with worker.working():
            await fake.called.wait()
            await worker.jobs.summarise_now(other, WINDOWS, 20)
    assert (await worker.now(other)).summarised == 5
    assert (await worker.now(stuck)).summarised == 0


@ONE_DATABASE
async def test_only_so_much_is_done_at_a_time(engine: AsyncEngine) -> None:
    under_way = most = 0
    two = asyncio.Event()
    go_on = asyncio.Event()

    async def counted(request: pb.RunRoleRequest) -> pb.RunRoleResponse:
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
        worker = Worker(engine, Clock(), tasks, at_once=2)
        for number in range(5):
            await worker.put(await worker.fill(10, f"diary {number}"))
        async with worker.working():
            await two.wait()
            await worker.noted.looks(3)
            go_on.set()
            for _ in range(5):
                assert await worker.noted.next() == DONE
    assert most == 2


async def test_of_a_batch_all_or_nothing_is_committed(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_inference(summarise="m") as (_, tasks):
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(10)

        async def breaks(*arguments: object) -> None:
            raise unavailable("no archive")

        with monkeypatch.context() as patched:
            patched.setattr(worker.stores.archive, "add", breaks)
            await worker.put(record)
            async with worker.working():
                assert await worker.noted.next() == FAILED
        assert await summary_rows(engine) == []
        assert (await worker.now(record)).summarised == 0
        assert await jobs_left(engine) == [("summary", 1, 5)]
        await worker.jobs.run_due(record.id, 20)
    assert await summary_rows(engine) == [(1, 5, False, False)]


@ONE_DATABASE
async def test_a_database_that_is_silent_is_told_to_who_waits(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_inference() as (_, tasks):
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(10)

        async def breaks(*arguments: object) -> None:
            raise unavailable("no database")

        monkeypatch.setattr(worker.stores.archive, "add", breaks)
        with pytest.raises(GatewayError):
            await worker.jobs.summarise_now(record, WINDOWS, 0)


async def test_turns_that_are_rewound_meanwhile_leave_no_summary(engine: AsyncEngine) -> None:
    rewound = asyncio.Event()

    async def when_rewound(request: pb.RunRoleRequest) -> pb.RunRoleResponse:
        await rewound.wait()
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = when_rewound
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(10)
        await worker.put(record)
        async with worker.working():
            await fake.called.wait()
            await worker.rewind_to(record, 8)
            rewound.set()
            assert (await worker.noted.next())[1] in ("lost", "moved")
            assert await jobs_left(engine) == []
    assert await summary_rows(engine) == []
    assert await archived_turns(engine, record) == []
    assert (await worker.now(record)).summarised == 0


@ONE_DATABASE
async def test_a_summary_is_made_anew_when_later_turns_are_rewound_meanwhile(
    engine: AsyncEngine,
) -> None:
    rewound = asyncio.Event()

    async def when_rewound(request: pb.RunRoleRequest) -> pb.RunRoleResponse:
        await rewound.wait()
        return await short(request)

    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = when_rewound
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(12)
        await worker.put(record)
        async with worker.working():
            await fake.called.wait()
            await worker.rewind_to(record, 20)
            rewound.set()
            assert await worker.noted.next() == ("summary", "moved")
            await worker.later(1)
            assert await worker.noted.next() == DONE
    assert await summary_rows(engine) == [(1, 5, False, False)]


async def test_rewound_turns_take_their_summaries_with_them_and_the_one_before_counts(
    engine: AsyncEngine,
) -> None:
    async with fake_inference() as (_, tasks):
        worker = Worker(engine, Clock(), tasks)
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


@ONE_DATABASE
async def test_how_much_there_is_to_do_is_told(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m") as (fake, tasks):
        fake.act = hangs
        worker = Worker(engine, Clock(), tasks)
        await worker.put(await worker.fill(15))
        worker.clock.now_s += 7
        async with worker.working():
            await fake.called.wait()
        told = worker.noted.backlogs[0]
    assert (told.jobs, told.oldest_s) == (2, 7.0)


async def test_a_forgotten_memory_leaves_no_work(engine: AsyncEngine) -> None:
    async with fake_inference(summarise="m", embed="e") as (fake, tasks):
        worker = Worker(engine, Clock(), tasks)
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


async def test_archived_turns_get_vectors_where_a_model_makes_them(engine: AsyncEngine) -> None:
    async with fake_inference(embed="e") as (fake, tasks):
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(20)
        # Turns that were archived before there was a model for vectors are made up for.
        tasks.roles = tasks.roles.model_copy(update={"embed": ""})
        await worker.jobs.summarise_now(record, Windows(10, 10), 20)
        tasks.roles = tasks.roles.model_copy(update={"embed": "e"})
        async with worker.working():
            await worker.jobs.summarise_now(await worker.now(record), WINDOWS, 20)
            assert (JobKind.EMBED.value, "done") in [
                await worker.noted.next(),
                await worker.noted.next(),
                await worker.noted.next(),
            ]
        lacking = await worker.stores.archive.without_vectors(
            "ada", record.id, "sandbox/embed", after_turn=0, limit=100
        )
    assert lacking == []
    texts = [text for _, request in fake.asked for text in request.texts]
    assert len(texts) == len(set(texts)) == 15


async def test_a_turn_never_has_the_vector_of_what_was_said_there_before(
    engine: AsyncEngine,
) -> None:
    rewritten = asyncio.Event()

    async def when_rewritten(request: pb.RunRoleRequest) -> pb.RunRoleResponse:
        await rewritten.wait()
        return await short(request)

    async with fake_inference(embed="e") as (fake, tasks):
        fake.act = when_rewritten
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(10)
        await worker.jobs.summarise_now(record, WINDOWS, 20)
        assert await worker.noted.next() == DONE
        async with worker.working():
            await fake.called.wait()
            record = await worker.rewind_to(await worker.now(record), 8)
            other = turn(5, 8, "something else", "indeed")
            record = await worker.add(record, other, *facts_said(6, 10))
            await worker.jobs.summarise_now(record, WINDOWS, 20)
            assert await worker.noted.next() == DONE
            rewritten.set()
            told = {await worker.noted.next() for _ in range(2)}
        assert told == {("embed", "moved"), ("embed", "done")}
    embedded = [text for _, request in fake.asked for text in request.texts]
    assert any("something else" in text for text in embedded)


@ONE_DATABASE
async def test_turns_are_left_without_vectors_when_the_model_keeps_failing(
    engine: AsyncEngine,
) -> None:
    async with fake_inference(embed="e") as (fake, tasks):
        fake.act = fails
        worker = Worker(engine, Clock(), tasks)
        record = await worker.fill(10)
        await worker.jobs.summarise_now(record, WINDOWS, 20)
        assert await worker.noted.next() == DONE
        async with worker.working():
            for _ in range(9):
                assert await worker.noted.next() == ("embed", "failed")
                await worker.later(3600)
            assert await worker.noted.next() == ("embed", "dropped")
    assert await jobs_left(engine) == []
    assert len(fake.asked) == 10
