"""What workers die of is given up, on both databases: requests, files, and whole tasks."""

import asyncio
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from facade.internal_requests import InternalResponse
from gateway.batches.v1 import batches_pb2 as pb
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from services.batches.execution import BatchCall
from services.batches.finalizing import Finalizing
from services.batches.records import TaskKind
from services.batches.repository import NewBatch
from services.batches.task_queue import TaskQueue
from services.batches.tasks import MAX_CLAIMS, TaskFilter
from services.batches.validation import Validation
from tests.services.batches.test_task_queue import (
    ADA,
    LEASE_S,
    LIMITS,
    OTHERS,
    RUNS,
    Hosts,
    Model,
    claimed,
    results,
    store,
    task_run,
)


class Deadly(Model):
    """Executes requests at workers that die of some.

    Attributes:
        died: set when a worker dies.
        deaths: the bodies of the requests that workers died of, in order.
    """

    def __init__(self, *deadly: bytes) -> None:
        super().__init__(200)
        self._deadly = deadly
        self.died = asyncio.Event()
        self.deaths: list[bytes] = []

    async def execute(self, call: BatchCall) -> InternalResponse:
        if call.body in self._deadly:
            self.deaths.append(call.body)
            self.died.set()
        if self.died.is_set():
            await asyncio.Event().wait()
        return await super().execute(call)


async def test_a_request_that_kills_its_workers_is_given_up(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    items = [pb.BatchItem(custom_id=f"r{n}", body=b'{"n": %d}' % n) for n in range(20)]
    request = pb.CreateBatchRequest(dialect=DIALECT_ANTHROPIC, endpoint="/v1/messages", items=items)
    batch = await hosts.repository.create(NewBatch(ADA, request))
    model = Deadly(b'{"n": 6}', b'{"n": 11}')
    async with asyncio.timeout(60):
        while tasks := await hosts.first.claim(RUNS):
            model.died.clear()
            running = asyncio.create_task(task_run(hosts, tasks[0], model).run())
            died = asyncio.create_task(model.died.wait())
            await asyncio.wait([running, died], return_when=asyncio.FIRST_COMPLETED)
            # Its requests wait for ever; another process has noticed its death.
            await hosts.first.release_of_process("")
            hosts.first = TaskQueue(engine, hosts.own_clock, LEASE_S)
    # Among others, then alone; the second is found while the first is.
    assert model.deaths == [b'{"n": 6}'] * 3 + [b'{"n": 11}'] * 2
    counts = (await hosts.find(batch)).counts
    assert (counts.succeeded, counts.errored) == (18, 2)
    pages = hosts.repository.stored_results(batch.id, succeeded=False)
    given_up = [(each.custom_id, each.outcome) async for page in pages for each in page]
    assert given_up == [(name, pb.BATCH_OUTCOME_ABANDONED) for name in ("r6", "r11")]


async def test_a_task_whose_workers_all_die_is_given_up(engine: AsyncEngine) -> None:
    hosts = Hosts(engine)
    batch = await hosts.create(3)
    model = Model(200)
    for _ in range(MAX_CLAIMS):
        task = await claimed(hosts.first)
        hosts.clock.now_s += LEASE_S + 1
    # A worker that stops has not died.
    await hosts.first.release(await claimed(hosts.first))
    task = await claimed(hosts.second)
    assert task.claims == MAX_CLAIMS + 1
    await hosts.second.release(task)
    await task_run(hosts, await claimed(hosts.first), model).run()
    assert (model.calls, (await hosts.find(batch)).counts.errored) == (0, 3)


@pytest.mark.parametrize("kind", [TaskKind.VALIDATE, TaskKind.FINALIZE])
async def test_a_file_that_kills_its_workers_is_given_up(
    engine: AsyncEngine, kind: TaskKind
) -> None:
    hosts = Hosts(engine)
    # The file is not read or written any more.
    no_files: Any = None
    request = pb.CreateBatchRequest(
        dialect=DIALECT_ANTHROPIC, endpoint="/v1/messages", input_file_id="file-1"
    )
    batch = await hosts.repository.create(NewBatch(ADA, request))
    if kind is TaskKind.FINALIZE:
        [validating] = await hosts.first.claim(OTHERS)
        row = {"batch_id": batch.id, "number": 0, "custom_id": "r", "provider_batch_id": ""}
        await hosts.first.store_request_rows(validating, [row | {"body": b"{}"}])
        await hosts.first.begin(validating, 1)
        running = await claimed(hosts.first)
        assert await store(hosts.first, running, results(running, b"1"), is_done=True)
    for _ in range(MAX_CLAIMS):
        await hosts.first.claim(OTHERS)
        hosts.clock.now_s += LEASE_S + 1
    [task] = await hosts.second.claim(OTHERS)
    assert (task.kind, task.is_given_up) == (kind, True)
    if kind is TaskKind.VALIDATE:
        await Validation(hosts.second, no_files, no_files, LIMITS, hosts.own_clock).run(task)
    else:
        finalizing = Finalizing(hosts.second, hosts.repository, no_files, no_files, hosts.own_clock)
        await finalizing.run(task)
    hosts.clock.now_s += LEASE_S + 1
    assert not await hosts.first.claim(TaskFilter(list(TaskKind)))
    ended = await hosts.find(batch)
    params = {TaskKind.VALIDATE: "input_file_id", TaskKind.FINALIZE: "output_file_id"}
    assert ended.state == pb.BATCH_STATE_FAILED
    assert [(each.code, each.param) for each in ended.errors] == [("worker_died", params[kind])]
    assert ended.counts.succeeded == len(await hosts.stored()) == (kind is TaskKind.FINALIZE)
