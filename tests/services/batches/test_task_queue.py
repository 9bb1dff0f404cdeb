"""The queue of batches on both databases: leases, and one result for each request."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from facade.internal_requests import InternalResponse
from gateway.accounts.v1 import accounts_pb2
from gateway.batches.v1 import batches_pb2 as pb
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from services.batches.execution import BatchCall
from services.batches.finalizing import Finalizing
from services.batches.records import BatchLimits, RequestResult, TaskKind, TaskLostError
from services.batches.repository import BatchRepository, NewBatch
from services.batches.retries import retry_delay_s
from services.batches.slots import RequestSlots
from services.batches.tables import batch_results
from services.batches.task_queue import Task, TaskQueue
from services.batches.task_rows import TASK_SIZE
from services.batches.task_run import TaskRun
from services.common.clock import Clock
from services.common.grpc.authentication import Caller
from services.common.process.byte_budget import open_budget
from services.common.settings import Limits
from services.common.storage.database import reading_once
from tests.manual_clock import ManualClock
from tests.waiting import until

OTHERS = (TaskKind.VALIDATE, TaskKind.FINALIZE)
LEASE_S = 30
LIMITS = BatchLimits(1_000, 1 << 20, 1 << 20, 3, 86_400, 86_400, LEASE_S)
ADA = Caller("user_ada", "", accounts_pb2.PLAN_PERSONAL_FREE, key_id="key_ada")


class Hosts:
    """Two hosts, which share a database and a clock."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.clock = ManualClock()
        clock = Clock(self.clock.now, self.clock.monotonic)
        self.engine = engine
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
    task = await queue.claim([TaskKind.RUN])
    assert task is not None
    return task


def results(task: Task, body: bytes, *numbers: int) -> list[RequestResult]:
    """Return results of a task's requests, by default of all."""
    outcome = pb.BATCH_OUTCOME_SUCCEEDED
    return [
        RequestResult(request.number, request.custom_id, outcome, 200, "req", body, (3, 2, 1))
        for request in task.requests
        if not numbers or request.number in numbers
    ]


async def lost(queue: TaskQueue, task: Task, stored: list[RequestResult], *, is_done: bool) -> bool:
    """Return whether results are not stored since another host holds the task."""
    try:
        await queue.store(task, stored, is_done=is_done)
    except TaskLostError:
        return True
    return False


async def test_each_request_has_one_result_whoever_dies(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    size = TASK_SIZE + 10
    batch = await hosts.create(size)
    dying, other = await claimed(hosts.first), await claimed(hosts.second)
    assert [len(task.requests) for task in (dying, other)] == [TASK_SIZE, 10]
    assert await hosts.second.claim([TaskKind.RUN]) is None
    await hosts.first.store(dying, results(dying, b"1", 0, 1, 2), is_done=False)
    await hosts.second.store(other, results(other, b"2"), is_done=True)
    assert await hosts.second.claim(OTHERS) is None, "a task is left"

    hosts.clock.now_s += LEASE_S + 1
    again = await claimed(hosts.second)
    assert [request.number for request in again.requests] == list(range(3, TASK_SIZE))
    for is_done in (False, True):
        assert await lost(hosts.first, dying, results(dying, b"late", 4), is_done=is_done)
    assert await hosts.first.renew([dying.id]) == set()
    await hosts.second.store(again, results(again, b"2"), is_done=True)
    assert await lost(hosts.second, again, [], is_done=True)

    assert await hosts.stored() == [(n, b"1" if n < 3 else b"2") for n in range(size)]
    ended = await hosts.find(batch)
    assert (ended.counts.total, ended.counts.succeeded) == (size, size)
    assert (ended.usage.input_tokens, ended.usage.output_tokens) == (3 * size, 2 * size)
    assert ended.state == pb.BATCH_STATE_FINALIZING
    last = await hosts.first.claim(OTHERS)
    assert last is not None and last.kind is TaskKind.FINALIZE
    assert await hosts.second.claim(OTHERS) is None, "it is finalized once"


async def test_a_cancelled_batch_ends_with_what_runs(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    batch = await hosts.create(3 * TASK_SIZE)
    task = await claimed(hosts.first)
    cancelled = await hosts.repository.cancel(ADA.user_id, batch.id, DIALECT_ANTHROPIC)
    assert cancelled.cancelling_at_ms and cancelled.state == pb.BATCH_STATE_IN_PROGRESS
    assert await hosts.second.claim([TaskKind.RUN]) is None
    assert await hosts.first.cancelled([batch.id]) == {batch.id}
    await hosts.first.store(task, results(task, b"1", 0, 1), is_done=True)
    last = await hosts.second.claim(OTHERS)
    assert last is not None and last.is_cancelled
    assert await hosts.second.complete_results(last) == 3 * TASK_SIZE - 2
    assert await hosts.second.complete_results(last) == 0, "it may be repeated"
    counts = (await hosts.find(batch)).counts
    assert (counts.succeeded, counts.cancelled) == (2, 3 * TASK_SIZE - 2)
    assert len(await hosts.stored()) == 3 * TASK_SIZE


async def test_users_in_turn_and_a_batch_that_waits(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    await hosts.create(1)
    assert await hosts.first.claim([TaskKind.RUN], [ADA.user_id]) is None
    task = await claimed(hosts.first)
    await hosts.first.release(task, delay_s=60)
    assert not any(await hosts.second.free([list(TaskKind)]))
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
    return TaskRun(task, hosts.first, model.execute, lambda _: "key", slots, budget, clock)


async def test_a_batch_whose_time_is_over_expires(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    batch = await hosts.create(3)
    hosts.clock.now_s += LIMITS.window_s
    model = Model(200)
    await task_run(hosts, await claimed(hosts.first), model).run()
    last = await hosts.first.claim(OTHERS)
    assert last is not None and not model.calls
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
