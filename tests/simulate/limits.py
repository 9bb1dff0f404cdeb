"""Simulation of many workers on limits: the product's own code, over a table in memory.

The database answers after a fixed time. What passes is held against the limits.
"""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Grant, SubjectLimits
from services.accounts.limits.arithmetic import grant
from services.common.errors import GatewayError
from services.inference.allowances.admission import Admission
from services.inference.allowances.allowance import Claim
from services.inference.allowances.leaser import Key, Leaser
from services.inference.allowances.needs import RequestLimits, Reservation
from tests.simulate.virtual_time import VirtualTimeLoop, simulate

DATABASE_S = 0.005
ANSWER_S = 2.0
# Tokens of an answer on average, and what a request reserves.
TOKENS = 1_000
RESERVED = 4_000
# The simulation begins so long before a new minute.
BEFORE_MINUTE_S = 10
_BEGIN_MS = 1_700_000_040_000 - 1000 * BEFORE_MINUTE_S


@dataclass(frozen=True)
class Scenario:
    """A simulated load.

    Attributes:
        name: for the table.
        workers: how many.
        subjects: users; each request is of one of them, at any worker.
        requests_per_s: of all users together, evenly over time on average.
        requests_per_minute: limit of a user; those on tokens and concurrency follow from it.
        seconds: how long.
        tick_s: `limits.lease_every_s`.
    """

    name: str
    workers: int
    subjects: int
    requests_per_s: int
    requests_per_minute: int
    seconds: int = 15
    tick_s: int = 1

    @property
    def concurrent_requests(self) -> int:
        """Limit of a user, which its requests a minute reach only in bursts."""
        return max(2, self.requests_per_minute // 2)


@dataclass
class Outcome:
    """Results of a simulation.

    Attributes:
        passed: requests that were admitted, by the beginning of their minute and user.
        refused: requests that were not.
        calls: transactions of the database.
        claims: allowances that they were about.
        most_under_way: the most requests that one user had under way.
    """

    passed: Counter[tuple[int, str]] = field(default_factory=Counter)
    refused: int = 0
    calls: int = 0
    claims: int = 0
    most_under_way: int = 0


class _Table:
    """The LimitService's table, for workers that do not die."""

    def __init__(self, scenario: Scenario, outcome: Outcome) -> None:
        self._limits = {
            limits_pb2.MEASURE_REQUESTS_PER_MINUTE: scenario.requests_per_minute,
            limits_pb2.MEASURE_TOKENS_PER_MINUTE: scenario.requests_per_minute * TOKENS * 2,
            limits_pb2.MEASURE_CONCURRENT_REQUESTS: scenario.concurrent_requests,
        }
        self._outcome = outcome
        self._rows: dict[tuple[Key, int, int], int] = defaultdict(int)
        self._sums: dict[tuple[Key, int], int] = defaultdict(int)

    def answer(self, worker: int, key: Key, claim: Claim) -> Grant:
        place = key, claim.window.start_ms
        others = self._sums[place] - self._rows[*place, worker]
        limit = self._limits[key.measure]
        granted, remaining = grant(
            limit - others - claim.held_amount,
            claim.amount,
            claim.min_amount,
            claim.prefetch_amount,
            overdraws=claim.overdraws,
        )
        self._rows[*place, worker] = claim.held_amount + granted
        self._sums[place] = others + claim.held_amount + granted
        return Grant(granted=granted, remaining=remaining, limit=limit)


class _Client:
    """The LimitService as one worker calls it."""

    def __init__(self, worker: int, table: _Table, outcome: Outcome) -> None:
        self._worker = worker
        self._table = table
        self._outcome = outcome

    async def lease(self, claims: Sequence[tuple[Key, Claim]]) -> list[Grant]:
        """Answer claims after the time that the database takes."""
        self._outcome.calls += 1
        self._outcome.claims += len(claims)
        await asyncio.sleep(DATABASE_S / 2)
        grants = [self._table.answer(self._worker, *claim) for claim in claims]
        await asyncio.sleep(DATABASE_S / 2)
        return grants


def run(scenario: Scenario) -> Outcome:
    """Run a simulation."""
    return simulate(lambda loop: _Simulation(scenario, loop).run())


class _Simulation:
    def __init__(self, scenario: Scenario, loop: VirtualTimeLoop) -> None:
        self._scenario = scenario
        self._loop = loop
        self._outcome = Outcome()
        self._random = random.Random(1)
        self._under_way: Counter[str] = Counter()
        table = _Table(scenario, self._outcome)
        self._leasers = [
            Leaser(
                _Client(worker, table, self._outcome),
                self._now_ms,
                tick_s=scenario.tick_s,
                slot_lease_s=max(4, 3 * scenario.tick_s),
            )
            for worker in range(scenario.workers)
        ]
        self._workers = [Admission(leaser, self._now_ms) for leaser in self._leasers]
        minute = scenario.requests_per_minute
        self._users = [
            SubjectLimits(
                kind=limits_pb2.SUBJECT_KIND_USER,
                id=f"user_{number}",
                requests_per_minute=minute,
                tokens_per_minute=minute * TOKENS * 2,
                concurrent_requests=scenario.concurrent_requests,
            )
            for number in range(scenario.subjects)
        ]

    def _now_ms(self) -> int:
        return _BEGIN_MS + int(1000 * self._loop.now_s)

    async def run(self) -> Outcome:
        scenario = self._scenario
        requests = set()
        while self._loop.now_s < scenario.seconds:
            await asyncio.sleep(self._random.expovariate(scenario.requests_per_s))
            request = asyncio.create_task(self._request())
            requests.add(request)
            request.add_done_callback(requests.discard)
        outcome = self._outcome
        # Of the seconds in which requests came.
        calls, claims = outcome.calls, outcome.claims
        await asyncio.gather(*requests)
        for leaser in self._leasers:
            await leaser.close()
        outcome.calls, outcome.claims = calls, claims
        return outcome

    async def _request(self) -> None:
        user = self._random.choice(self._users)
        try:
            worker = self._random.choice(self._workers)
            permit = await worker.admit(RequestLimits([user]), Reservation(1, RESERVED))
        except GatewayError:
            self._outcome.refused += 1
            return
        self._outcome.passed[self._now_ms() // 60_000, user.id] += 1
        self._under_way[user.id] += 1
        self._outcome.most_under_way = max(self._outcome.most_under_way, self._under_way[user.id])
        await asyncio.sleep(self._random.expovariate(1 / ANSWER_S))
        self._under_way[user.id] -= 1
        permit.end(int(self._random.uniform(0.5, 1.5) * TOKENS), 0)
