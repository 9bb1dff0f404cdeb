"""The queue of batches on both databases: leases, and one result for each request."""

import asyncio
import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from facade.dialects.anthropic.batches import render_result
from facade.dialects.openai.batches import render_line
from facade.internal_requests import InternalResponse
from gateway.accounts.v1 import accounts_pb2
from gateway.batches.v1 import batches_pb2 as pb
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from gateway.errors.v1 import errors_pb2
from services.batches.claim_pace import ClaimPace
from services.batches.execution import BatchCall
from services.batches.finalizing import Finalizing
from services.batches.records import BatchLimits, RequestResult, TaskKind
from services.batches.repository import (
    BatchRepository,
    NewBatch,
    delete_some,
    insert_requests,
)
from services.batches.result_writer import ResultWriter
from services.batches.retries import retry_delay_s
from services.batches.slots import RequestSlots
from services.batches.tables import batch_requests, batch_results, batches
from services.batches.task_queue import TaskQueue
from services.batches.task_rows import TASK_SIZE
from services.batches.task_run import TaskRun
from services.batches.tasks import Task, TaskFilter, TaskResults
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller
from services.common.process.byte_budget import open_budget
from services.common.settings import Limits
from services.common.storage.database import reading_once
from tests.manual_clock import ManualClock
from tests.waiting import until

OTHERS = TaskFilter((TaskKind.VALIDATE, TaskKind.FINALIZE))
RUNS = TaskFilter((TaskKind.RUN,))
LEASE_S = 30
LIMITS = BatchLimits(1_000, 1 << 20, 1 << 20, 3, 86_400, 86_400, LEASE_S)
ADA = Caller("user_ada", "", accounts_pb2.PLAN_PERSONAL_FREE, key_id="key_ada")


class Hosts:
    """Two hosts, which share a database and a clock."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.clock = ManualClock()
        clock = Clock(self.clock.now, self.clock.monotonic)
        self.engine, self.own_clock = engine, clock
        self.repository = BatchRepository(engine, clock, LIMITS)
        self.first, self.second = (TaskQueue(engine, clock, LEASE_S) for _ in range(2))

    async def create(self, size: int, body: bytes = b"{}") -> pb.Batch:
        """Create a batch of requests."""
        items = [pb.BatchItem(custom_id=f"r{number}", body=body) for number in range(size)]
        request = pb.CreateBatchRequest(
            dialect=DIALECT_ANTHROPIC, endpoint="/v1/messages", items=items
        )
        return await self.repository.create(NewBatch(ADA, request))

    async def find(self, batch: pb.Batch) -> pb.Batch:
        """Return the batch as it is now."""
        return await self.repository.find(ADA.user_id, batch.id, DIALECT_ANTHROPIC)

    async def stored(self) -> Sequence[tuple[int, bytes]]:
        """Return the number and the body of each result, in order."""
        query = select(batch_results.c.number, batch_results.c.body).order_by("number")
        async with reading_once(self.engine) as connection:
            return [(row.number, row.body) for row in (await connection.execute(query)).all()]


async def claimed(queue: TaskQueue) -> Task:
    [task] = await queue.claim(RUNS)
    return task


def results(task: Task, body: bytes, *numbers: int) -> list[RequestResult]:
    """Return results of a task's requests, by default of all."""
    outcome = pb.BATCH_OUTCOME_SUCCEEDED
    return [
        RequestResult(request.number, request.custom_id, outcome, 200, "req", body, (3, 2, 1))
        for request in task.requests
        if not numbers or request.number in numbers
    ]


async def store(
    queue: TaskQueue, task: Task, stored: list[RequestResult], *, is_done: bool
) -> bool:
    """Store results; return whether this host held the task."""
    return bool(await queue.store([TaskResults(task, stored, is_done)]))


async def test_each_request_has_one_result_whoever_dies(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    size = TASK_SIZE + 10
    batch = await hosts.create(size)
    dying, other = await claimed(hosts.first), await claimed(hosts.second)
    assert [len(task.requests) for task in (dying, other)] == [TASK_SIZE, 10]
    assert not await hosts.second.claim(RUNS)
    assert await store(hosts.first, dying, results(dying, b"1", 0, 1, 2), is_done=False)
    assert await store(hosts.second, other, results(other, b"2"), is_done=True)
    assert not await hosts.second.claim(OTHERS), "a task is left"

    hosts.clock.now_s += LEASE_S + 1
    again = await claimed(hosts.second)
    assert [request.number for request in again.requests] == list(range(3, TASK_SIZE))
    for is_done in (False, True):
        assert not await store(hosts.first, dying, results(dying, b"late", 4), is_done=is_done)
    assert await hosts.first.renew([dying.id]) == set()
    assert await store(hosts.second, again, results(again, b"2"), is_done=True)
    assert not await store(hosts.second, again, [], is_done=True)

    assert await hosts.stored() == [(n, b"1" if n < 3 else b"2") for n in range(size)]
    ended = await hosts.find(batch)
    assert (ended.counts.total, ended.counts.succeeded) == (size, size)
    assert (ended.usage.input_tokens, ended.usage.output_tokens) == (3 * size, 2 * size)
    assert ended.state == pb.BATCH_STATE_FINALIZING
    [last] = await hosts.first.claim(OTHERS)
    assert last.kind is TaskKind.FINALIZE
    assert not await hosts.second.claim(OTHERS), "it is finalized once"


async def test_a_cancelled_batch_ends_with_what_runs(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    batch = await hosts.create(3 * TASK_SIZE)
    task = await claimed(hosts.first)
    cancelled = await hosts.repository.cancel(ADA.user_id, batch.id, DIALECT_ANTHROPIC)
    assert cancelled.cancelling_at_ms and cancelled.state == pb.BATCH_STATE_IN_PROGRESS
    assert not await hosts.second.claim(RUNS)
    assert await hosts.first.cancelled([batch.id]) == {batch.id}
    assert await store(hosts.first, task, results(task, b"1", 0, 1), is_done=True)
    [last] = await hosts.second.claim(OTHERS)
    assert last.is_cancelled
    assert await hosts.second.complete_results(last) == 3 * TASK_SIZE - 2
    assert await hosts.second.complete_results(last) == 0, "it may be repeated"
    counts = (await hosts.find(batch)).counts
    assert (counts.succeeded, counts.cancelled) == (2, 3 * TASK_SIZE - 2)
    assert len(await hosts.stored()) == 3 * TASK_SIZE


async def test_users_in_turn_and_a_batch_that_waits(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    await hosts.create(1)
    assert not await hosts.first.claim(TaskFilter(RUNS.kinds, [ADA.user_id]))
    task = await claimed(hosts.first)
    await hosts.first.release(task, delay_s=60)
    assert not any(await hosts.second.free([TaskFilter(list(TaskKind))]))
    hosts.clock.now_s += 61
    assert (await claimed(hosts.second)).id == task.id


class Model:
    """Executes requests: each has the response of a status, and is counted."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.calls = 0

    async def execute(self, call: BatchCall) -> InternalResponse:
        self.calls += 1
        return InternalResponse(self.status, b"{}", "req", 300.0, (0, 0, 0))


def task_run(hosts: Hosts, task: Task, model: Model) -> TaskRun:
    """Return the run of a task at the first host."""
    slots = RequestSlots(4, 2, lambda: None)
    budget = open_budget(Limits())
    clock = Clock(hosts.clock.now, hosts.clock.monotonic)
    writer, alone = ResultWriter(hosts.first.store), asyncio.Lock()
    execute = model.execute
    return TaskRun(task, hosts.first, writer, execute, str, slots, alone, budget, clock)


async def test_a_batch_whose_time_is_over_expires(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    batch = await hosts.create(3)
    hosts.clock.now_s += LIMITS.window_s
    model = Model(200)
    await task_run(hosts, await claimed(hosts.first), model).run()
    [last] = await hosts.first.claim(OTHERS)
    assert not model.calls
    clock = Clock(hosts.clock.now, hosts.clock.monotonic)
    # Batches of messages have no files.
    no_files: Any = None
    await Finalizing(hosts.first, hosts.repository, no_files, no_files, clock).run(last)
    ended = await hosts.find(batch)
    assert (ended.state, ended.counts.expired) == (pb.BATCH_STATE_EXPIRED, 3)
    pages = hosts.repository.results(ADA.user_id, batch.id, DIALECT_ANTHROPIC)
    outcomes = [result.outcome async for page in pages for result in page]
    assert outcomes == [pb.BATCH_OUTCOME_EXPIRED] * 3
    hosts.clock.now_s += LIMITS.retention_s
    while await hosts.repository.delete_expired():
        pass
    assert await hosts.stored() == []


async def test_requests_at_a_limit_are_left_to_others(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    await hosts.create(3)
    limited = Model(429)
    run = task_run(hosts, await claimed(hosts.first), limited)
    running = asyncio.create_task(run.run())
    await until(lambda: limited.calls == 3)
    run.leave()
    await running
    again = await claimed(hosts.second)
    assert [request.number for request in again.requests] == [0, 1, 2]


async def test_requests_that_wait_for_nothing_leave_the_loop(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    await hosts.create(40)
    invalid = Model(400)
    running = asyncio.create_task(task_run(hosts, await claimed(hosts.first), invalid).run())
    calls = [0]
    while not running.done():
        await asyncio.sleep(0)
        calls.append(invalid.calls)
    assert calls[-1] == 40
    assert max(after - before for before, after in itertools.pairwise(calls)) <= 2


async def test_nothing_is_left_of_a_batch_deleted_meanwhile(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    batch = await hosts.create(1)
    while await delete_some(engine, batches.c.id == batch.id):
        pass
    with pytest.raises(GatewayError, match="no such batch"):
        await insert_requests(engine, batch.id, 1, [pb.BatchItem(custom_id="late", body=b"{}")])
    async with reading_once(engine) as connection:
        assert (await connection.execute(select(batch_requests))).all() == []


def test_what_is_repeated_and_when() -> None:
    delays = {
        (429, None, 1): 1.0,
        (429, 20.0, 90): 20.0,
        (429, 9_000.0, 1): 300.0,
        (503, None, 1): 2.0,
        (529, None, 2): 8.0,
        (500, 40.0, 1): 40.0,
        (502, None, 4): None,
        (400, None, 1): None,
        (401, None, 1): None,
        (402, 60.0, 1): None,
        (200, None, 1): None,
    }
    assert {case: retry_delay_s(*case) for case in delays} == delays
    waits = itertools.takewhile(bool, (retry_delay_s(503, None, n) for n in range(1, 9)))
    assert list(waits) == [2.0, 8.0, 32.0]


def test_fast_tasks_are_claimed_in_blocks() -> None:
    pace, now_s, blocks = ClaimPace(), 1_000.0, []
    # Seconds until the next claim.
    for passed_s in (0.5, 1.0, 1.0, 1.0, 8.0, 60.0):
        blocks.append(pace.tasks(now_s))
        pace.add(["user"] * blocks[-1], now_s)
        now_s += passed_s
    assert blocks == [1, 2, 4, 8, 8, 4]
    assert pace.tasks(now_s) == 1, "others have the tasks of slow requests"


class LostAnswers:
    """A queue whose first answer to `store` is lost, after it has stored everything."""

    def __init__(self, queue: TaskQueue) -> None:
        self._queue = queue
        self.stored: list[int] = []

    async def store(
        self, parts: Sequence[TaskResults], *, is_repeated: bool = False
    ) -> Collection[str]:
        held_ids = await self._queue.store(parts, is_repeated=is_repeated)
        self.stored.append(len(parts))
        if len(self.stored) == 1:
            raise GatewayError(errors_pb2.REASON_UNAVAILABLE, "no answer")
        return held_ids


async def test_results_of_many_tasks_are_stored_once(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    batch = await hosts.create(4 * TASK_SIZE)
    tasks = await hosts.first.claim(TaskFilter(RUNS.kinds, at_most=4))
    assert len(tasks) == 4
    queue, lost = LostAnswers(hosts.first), list[str]()

    async def again(_: float) -> None:
        # Meanwhile another host has the last task.
        hosts.clock.now_s += LEASE_S + 1
        await hosts.first.renew([task.id for task in tasks[:3]])
        assert [task.id for task in await hosts.second.claim(RUNS)] == [tasks[3].id]

    writer = ResultWriter(queue.store, again)
    for task in tasks:
        writer.open(task, partial(lost.append, task.id))
        for result in results(task, b"1", *range(task.first, task.first + 10)):
            writer.add(task.id, result)
    await until(lambda: len(queue.stored) == 2)
    assert lost == [tasks[3].id]
    # What follows is stored when all tasks have ended.
    for task in tasks:
        for result in results(task, b"2", *range(task.first + 10, task.first + TASK_SIZE)):
            writer.add(task.id, result)
    await asyncio.gather(*[writer.end(task.id, is_done=True) for task in tasks])
    assert queue.stored == [4, 4, 3]
    stored = await hosts.stored()
    assert [body for _, body in stored] == 3 * ([b"1"] * 10 + [b"2"] * (TASK_SIZE - 10)) + 10 * [
        b"1"
    ]
    assert (await hosts.find(batch)).counts.succeeded == len(stored)


async def test_a_result_that_is_refused_is_replaced(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    batch = await hosts.create(TASK_SIZE + 2)
    tasks = await hosts.first.claim(TaskFilter(RUNS.kinds, at_most=2))
    writer = ResultWriter(hosts.first.store)
    for task in tasks:
        writer.open(task, lambda: pytest.fail("it is held"))
    for task in tasks:
        for result in results(task, b"1"):
            # More tokens than a column can count.
            is_refused = result.number in (3, 7, TASK_SIZE)
            tokens = (2**70, 0, 0) if is_refused else (1, 1, 0)
            writer.add(task.id, replace(result, tokens=tokens))
    await asyncio.gather(*[writer.end(task.id, is_done=True) for task in tasks])
    stored = await hosts.stored()
    assert [number for number, body in stored if not body] == [3, 7, TASK_SIZE]
    ended = await hosts.find(batch)
    assert (ended.counts.succeeded, ended.counts.errored) == (TASK_SIZE - 1, 3)
    assert ended.usage.input_tokens == TASK_SIZE - 1
    hosts.clock.now_s += LEASE_S + 1
    assert not await hosts.second.claim(RUNS), "none is run again"
    [last] = await hosts.second.claim(OTHERS)
    assert await hosts.second.complete_results(last) == 0
    pages = hosts.repository.stored_results(batch.id, succeeded=False)
    refused = [result async for page in pages for result in page]
    assert [result.outcome for result in refused] == [pb.BATCH_OUTCOME_NOT_STORED] * 3
    assert b'"response":null,"error":{"code":"result_not_stored"' in render_line(refused[0])
    assert b'"errored","error":{"type":"error"' in render_result(refused[0])


async def test_a_fault_of_ours_leaves_results_to_others(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    batch = await hosts.create(TASK_SIZE + 2)
    tasks = await hosts.first.claim(TaskFilter(RUNS.kinds, at_most=2))
    faults = [AttributeError("a fault")]

    async def storing(
        parts: Sequence[TaskResults], *, is_repeated: bool = False
    ) -> Collection[str]:
        if faults:
            raise faults.pop()
        return await hosts.first.store(parts, is_repeated=is_repeated)

    lost: list[str] = []
    writer = ResultWriter(storing)
    for task in tasks:
        writer.open(task, partial(lost.append, task.id))
        for result in results(task, b"1"):
            writer.add(task.id, result)
    # Whoever waits for them goes on, and nothing is stored in place of what the fault kept back.
    async with asyncio.timeout(60):
        await asyncio.gather(*[writer.end(task.id, is_done=True) for task in tasks])
    assert (lost, await hosts.stored()) == ([task.id for task in tasks], [])
    hosts.clock.now_s += LEASE_S + 1
    # The writer is as good as new, for the same tasks too.
    for again in await hosts.first.claim(TaskFilter(RUNS.kinds, at_most=2)):
        writer.open(again, lambda: pytest.fail("it is held"))
        for result in results(again, b"2"):
            writer.add(again.id, result)
        await writer.end(again.id, is_done=True)
    assert [body for _, body in await hosts.stored()] == [b"2"] * (TASK_SIZE + 2)
    assert (await hosts.find(batch)).counts.succeeded == TASK_SIZE + 2
