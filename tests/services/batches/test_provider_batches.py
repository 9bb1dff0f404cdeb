"""Batches at providers, on both databases: what is left by workers that die is completed once."""

from collections.abc import AsyncIterator, Sequence

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from facade.internal_requests import InternalResponse
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from gateway.errors.v1 import errors_pb2
from services.batches.collecting import Collecting
from services.batches.execution import BatchCall
from services.batches.provider_queue import ProviderQueue
from services.batches.records import TaskKind, TaskLostError
from services.batches.repository import BatchRepository
from services.batches.submitting import Submitting
from services.batches.tables import batch_requests, provider_batches
from services.batches.task_queue import TaskQueue
from services.batches.tasks import MAX_CLAIMS, Task, TaskFilter
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.messages.deferred_call import RenderedCall
from services.common.process.byte_budget import open_budget
from services.common.settings import Limits
from services.common.storage.database import reading_once
from tests.services.batches.test_task_queue import ADA, LEASE_S, LIMITS, Hosts

SIZE = 120
PATH = "/chat/completions"
LATER_S = 5.0
BODY = b'{"model": "m"}'


class Killed(BaseException):
    """Raised where a worker dies."""


class Provider:
    """A batch service; attributes say when the worker that calls it dies."""

    has_any = True

    def __init__(self) -> None:
        self.created: dict[str, tuple[str, Sequence[tuple[str, bytes]]]] = {}
        self.dies_after_create = False
        self.has_no_answers = False
        self.is_known = True
        self.cancelled: list[str] = []
        self.ended = True
        self.has_lost_all = False

    def serves(self, model: str) -> bool:
        return model != "own"

    async def create(
        self,
        provider: str,
        name: str,
        path: str,
        headers: object,
        requests: Sequence[tuple[str, bytes]],
    ) -> str:
        batch_id = f"theirs-{len(self.created)}"
        self.created[batch_id] = name, requests
        if self.dies_after_create:
            raise Killed
        if self.has_no_answers:
            raise GatewayError(errors_pb2.REASON_UPSTREAM_TIMEOUT, "no answer")
        return batch_id

    async def find(self, provider: str, name: str, since_s: float) -> str:
        if not self.is_known:
            raise GatewayError(errors_pb2.REASON_UPSTREAM_ERROR, "not yet")
        return next((each for each, (own, _) in self.created.items() if own == name), "")

    async def has_ended(self, provider: str, batch_id: str) -> bool:
        if self.has_lost_all:
            raise GatewayError(errors_pb2.REASON_NOT_FOUND, "no such batch")
        return self.ended

    async def answers(self, provider: str, batch_id: str) -> AsyncIterator[tuple[str, bytes]]:
        # Not the last one, in another order, and one that nobody asked for.
        for custom_id, body in [*reversed(self.created[batch_id][1][:-1]), ("r9999", b"x")]:
            yield custom_id, body

    async def cancel(self, provider: str, batch_id: str) -> None:
        self.cancelled.append(batch_id)
        self.ended = True

    async def delete(self, provider: str, batch_id: str) -> None:
        pass


class Worlds(Hosts):
    """Two hosts and a provider.

    Attributes:
        read: the answers that were read, in order.
        dies_at: the number of the answer at which the worker dies that reads it.
        admits: how many requests the limits of the user admit.
        keeps_every: one of so many requests is left to the gateway's own workers; 0 for none.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        clock = Clock(self.clock.now, self.clock.monotonic)
        self.own_clock = clock
        self.repository = BatchRepository(engine, clock, LIMITS, lambda: True)
        self.provider = Provider()
        self.read: list[bytes] = []
        self.dies_at = -1
        self.admits = SIZE
        self.keeps_every = 0

    async def render(self, call: BatchCall) -> RenderedCall | None:
        if not self.admits:
            raise GatewayError(errors_pb2.REASON_RATE_LIMITED, "too many", retry_after_s=90)
        self.admits -= 1
        if self.keeps_every and not self.admits % self.keeps_every:
            return None
        return RenderedCall("openai", "m", PATH, (), call.body)

    async def execute(self, call: BatchCall) -> InternalResponse:
        assert call.deferred is not None and call.deferred.answer is not None
        assert (call.deferred.provider, call.deferred.model) == ("openai", "m")
        if len(self.read) == self.dies_at:
            self.dies_at = -1
            raise Killed
        self.read.append(call.deferred.answer)
        return InternalResponse(200, call.deferred.answer, "req", None, (1, 1, 0))

    def submitting(self, queue: TaskQueue) -> Submitting:
        at_provider = ProviderQueue(self.engine, self.own_clock, queue)
        budget = open_budget(Limits())
        clock = self.own_clock
        return Submitting(
            queue, at_provider, self.provider, self.render, str, budget, clock, self.sleep
        )

    async def sleep(self, seconds: float) -> None:
        """Move the clock instead of waiting."""
        self.clock.now_s += seconds

    def collecting(self, queue: TaskQueue) -> Collecting:
        at_provider = ProviderQueue(self.engine, self.own_clock, queue)
        budget = open_budget(Limits())
        return Collecting(
            queue, at_provider, self.provider, self.execute, str, budget, self.own_clock, LATER_S
        )


async def taken(queue: TaskQueue, kind: TaskKind) -> Task:
    [task] = await queue.claim(TaskFilter([kind]))
    return task


async def test_a_batch_survives_the_death_of_each_worker(engine: AsyncEngine) -> None:
    hosts = Worlds(engine)
    await hosts.create(SIZE, BODY)
    hosts.provider.dies_after_create = True
    first = await taken(hosts.first, TaskKind.SUBMIT)
    with pytest.raises(Killed):
        await hosts.submitting(hosts.first).run(first)
    assert not await hosts.second.claim(TaskFilter([TaskKind.SUBMIT])), "it is held"
    hosts.clock.now_s += LEASE_S + 1
    hosts.provider.dies_after_create = False
    second = await taken(hosts.second, TaskKind.SUBMIT)
    hosts.provider.is_known = False
    assert await hosts.submitting(hosts.second).run(second) > 0, "nothing is sent twice"
    assert not await hosts.first.claim(TaskFilter([TaskKind.RUN]))
    hosts.provider.is_known = True
    assert await hosts.submitting(hosts.second).run(second) == 0
    assert len(hosts.provider.created) == 1, "it was found by its name"
    with pytest.raises(TaskLostError):
        await hosts.submitting(hosts.first).run(first)

    hosts.dies_at = 70
    reading = await taken(hosts.first, TaskKind.COLLECT)
    assert not await hosts.second.claim(TaskFilter([TaskKind.RUN])), "all are at the provider"
    with pytest.raises(Killed):
        await hosts.collecting(hosts.first).run(reading)
    assert 0 < len(await hosts.stored()) <= 70
    hosts.clock.now_s += LEASE_S + 1
    again = await taken(hosts.second, TaskKind.COLLECT)
    assert await hosts.collecting(hosts.second).run(again) == 0
    with pytest.raises(TaskLostError):
        await hosts.collecting(hosts.first).run(reading)
    assert [number for number, _ in await hosts.stored()] == list(range(SIZE - 1))

    # The provider has not answered the last request, which is run by the gateway.
    run = await taken(hosts.first, TaskKind.RUN)
    assert [request.number for request in run.requests] == [SIZE - 1]
    assert not await hosts.second.claim(TaskFilter(list(TaskKind)))
    async with reading_once(engine) as connection:
        assert (await connection.execute(select(provider_batches))).all() == []


async def test_a_batch_whose_creation_had_no_answer_is_sent_once(engine: AsyncEngine) -> None:
    hosts = Worlds(engine)
    await hosts.create(SIZE, BODY)
    hosts.provider.has_no_answers, hosts.provider.is_known = True, False
    task = await taken(hosts.first, TaskKind.SUBMIT)
    for _ in range(2):
        assert await hosts.submitting(hosts.first).run(task) > 0
    hosts.provider.is_known = True
    assert await hosts.submitting(hosts.first).run(task) == 0
    assert len(hosts.provider.created) == 1
    assert not await hosts.second.claim(TaskFilter([TaskKind.RUN]))
    assert await taken(hosts.second, TaskKind.COLLECT)


async def test_a_limit_delays_what_is_not_submitted(engine: AsyncEngine) -> None:
    hosts = Worlds(engine)
    hosts.admits = 70
    await hosts.create(SIZE, BODY)
    task = await taken(hosts.first, TaskKind.SUBMIT)
    assert await hosts.submitting(hosts.first).run(task) == 90
    await hosts.first.release(task, 90)
    assert [len(requests) for _, requests in hosts.provider.created.values()] == [70]
    assert not await hosts.first.claim(TaskFilter([TaskKind.SUBMIT, TaskKind.RUN]))
    hosts.clock.now_s += 91
    hosts.admits = SIZE
    assert await hosts.submitting(hosts.second).run(await taken(hosts.second, TaskKind.SUBMIT)) == 0
    assert [len(requests) for _, requests in hosts.provider.created.values()] == [70, 50]
    sent = [
        custom_id for _, requests in hosts.provider.created.values() for custom_id, _ in requests
    ]
    assert sent == [f"r{number}" for number in range(SIZE)]


async def test_a_cancelled_batch_ends_at_its_provider(engine: AsyncEngine) -> None:
    hosts = Worlds(engine)
    batch = await hosts.create(SIZE, BODY)
    await hosts.submitting(hosts.first).run(await taken(hosts.first, TaskKind.SUBMIT))
    hosts.provider.ended = False
    waiting = await taken(hosts.first, TaskKind.COLLECT)
    assert await hosts.collecting(hosts.first).run(waiting) == LATER_S
    await hosts.first.release(waiting, LATER_S)
    await hosts.repository.cancel(ADA.user_id, batch.id, DIALECT_ANTHROPIC)
    cancelled = await taken(hosts.second, TaskKind.COLLECT)
    assert await hosts.collecting(hosts.second).run(cancelled) == LATER_S
    assert hosts.provider.cancelled == ["theirs-0"]
    assert await hosts.collecting(hosts.second).run(cancelled) == 0
    assert len(await hosts.stored()) == SIZE - 1
    # The last one has the result of a cancelled batch, whose task finds nothing to run.
    run = await taken(hosts.first, TaskKind.RUN)
    assert run.is_cancelled
    assert [request.number for request in run.requests] == [SIZE - 1]
    async with reading_once(engine) as connection:
        query = select(batch_requests.c.provider_batch_id).distinct()
        assert len((await connection.execute(query)).all()) == 1


async def test_own_workers_run_what_is_left_to_them(engine: AsyncEngine) -> None:
    hosts = Worlds(engine)
    hosts.keeps_every = 40
    await hosts.create(SIZE, BODY)
    await hosts.submitting(hosts.first).run(await taken(hosts.first, TaskKind.SUBMIT))
    tasks = await hosts.first.claim(TaskFilter([TaskKind.RUN], at_most=SIZE))
    assert [[each.number for each in task.requests] for task in tasks] == [[39], [79], [119]]
    assert [len(requests) for _, requests in hosts.provider.created.values()] == [SIZE - 3]
    # A provider that does not find a new batch may find it later.
    hosts.provider.has_lost_all = True
    for minutes, delay_s in ((9, LATER_S), (2, 0)):
        hosts.clock.now_s += 60 * minutes
        waiting = await taken(hosts.second, TaskKind.COLLECT)
        assert await hosts.collecting(hosts.second).run(waiting) == delay_s
    lost = await hosts.second.claim(TaskFilter([TaskKind.RUN], at_most=SIZE))
    assert sum(len(task.requests) for task in lost) == SIZE


async def test_tasks_whose_workers_all_die_are_left_to_others(engine: AsyncEngine) -> None:
    hosts = Worlds(engine)
    await hosts.create(SIZE, BODY)
    hosts.provider.dies_after_create = True
    with pytest.raises(Killed):
        await hosts.submitting(hosts.first).run(await taken(hosts.first, TaskKind.SUBMIT))
    hosts.admits = 0
    for kind, run in (
        (TaskKind.SUBMIT, hosts.submitting(hosts.second)),
        (TaskKind.COLLECT, hosts.collecting(hosts.second)),
    ):
        for _ in range(MAX_CLAIMS):
            hosts.clock.now_s += LEASE_S + 1
            task = await taken(hosts.second, kind)
            hosts.clock.now_s += LEASE_S + 1
        task = await taken(hosts.second, kind)
        assert task.is_given_up
        assert await run.run(task) == 0
    assert (hosts.read, len(hosts.provider.created)) == ([], 1)
    runs = await hosts.first.claim(TaskFilter([TaskKind.RUN], at_most=SIZE))
    assert sum(len(task.requests) for task in runs) == SIZE
    assert not await hosts.first.claim(TaskFilter([TaskKind.SUBMIT, TaskKind.COLLECT]))
