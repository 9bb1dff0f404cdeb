"""Simulation of many workers on background jobs: the product's runner, a queue in memory."""

import asyncio
import random
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from services.memory.jobs.job_queue import Backlog, Job, JobKind
from services.memory.jobs.job_worker import JobWorker
from tests.simulate.virtual_time import VirtualTimeLoop, simulate

DATABASE_S = 0.005
# A summary by a model.
JOB_S = 3.0
LEASE_S = 30.0
POLL_S = 2.0
AT_ONCE = 4


@dataclass(frozen=True)
class Scenario:
    """A simulated load.

    Attributes:
        name: for the table.
        workers: how many.
        jobs_per_s: put by all workers together.
        seconds: how long.
    """

    name: str
    workers: int
    jobs_per_s: int
    seconds: int = 15


@dataclass
class Outcome:
    """Results of a simulation.

    Attributes:
        put: jobs that were put in the queue.
        done: jobs that were done.
        calls: transactions of the database.
        waits_s: how long each job that was claimed had waited.
    """

    put: int = 0
    done: int = 0
    calls: int = 0
    waits_s: list[float] = field(default_factory=list)


class _Queue:
    """The queue as all workers see it."""

    lease_s = LEASE_S

    def __init__(self, loop: VirtualTimeLoop, outcome: Outcome) -> None:
        self._loop = loop
        self._outcome = outcome
        self._due: deque[tuple[float, int]] = deque()

    async def _call(self) -> None:
        self._outcome.calls += 1
        await asyncio.sleep(DATABASE_S)

    async def put_one(self) -> None:
        await self._call()
        self._due.append((self._loop.now_s, self._outcome.put))
        self._outcome.put += 1

    async def claim(self, limit: int, entity_id: str | None = None) -> list[Job]:
        await self._call()
        claimed = []
        while self._due and len(claimed) < limit:
            put_at, number = self._due.popleft()
            self._outcome.waits_s.append(self._loop.now_s - put_at)
            claimed.append(
                Job(f"job_{number}", JobKind.SUMMARY, "user", "mem", 0, 0, "", 0, 0, "holder")
            )
        return claimed

    async def renew(self, claimed: Collection[Job]) -> set[Job]:
        await self._call()
        return set(claimed)

    async def backlog(self) -> Backlog:
        await self._call()
        return Backlog(len(self._due), 0)

    async def finish(self) -> None:
        await self._call()
        self._outcome.done += 1


class _Runner(JobWorker):
    """A runner whose jobs take some time and do nothing."""

    def __init__(self, queue: _Queue, dice: random.Random) -> None:
        nothing: Any = None
        simulated: Any = queue
        observer: Any = SimpleNamespace(backlog=lambda _: None, ended=lambda *_: None)
        super().__init__(
            simulated, nothing, observer, POLL_S, at_once=AT_ONCE, uniform=dice.uniform
        )
        self._simulated_queue = queue
        self._dice = dice

    async def _outcome(self, job: Job) -> str:
        await asyncio.sleep(self._dice.expovariate(1 / JOB_S))
        await self._simulated_queue.finish()
        return "done"


def run(scenario: Scenario) -> Outcome:
    """Run a simulation."""
    return simulate(lambda loop: _run(scenario, loop))


async def _run(scenario: Scenario, loop: VirtualTimeLoop) -> Outcome:
    outcome = Outcome()
    dice = random.Random(1)
    queue = _Queue(loop, outcome)
    workers = [_Runner(queue, dice) for _ in range(scenario.workers)]
    running = [asyncio.create_task(worker.run()) for worker in workers]
    puts = set()

    async def put(worker: _Runner) -> None:
        await queue.put_one()
        worker.wake()

    while loop.now_s < scenario.seconds:
        if not scenario.jobs_per_s:
            await asyncio.sleep(scenario.seconds)
            break
        await asyncio.sleep(dice.expovariate(scenario.jobs_per_s))
        task = asyncio.create_task(put(dice.choice(workers)))
        puts.add(task)
        task.add_done_callback(puts.discard)
    outcome_then = Outcome(outcome.put, outcome.done, outcome.calls, list(outcome.waits_s))
    for task in running:
        task.cancel()
    await asyncio.gather(*running, *puts, return_exceptions=True)
    for worker in workers:
        await worker.stop()
    return outcome_then
