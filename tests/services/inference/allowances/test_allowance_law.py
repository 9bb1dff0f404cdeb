"""The laws of limits: what passes in a window never exceeds the limit, or by one reservation.

Workers with the real arithmetic share a table in memory that grants as the LimitService does.
Claims reach it at any time, answers are lost, workers are killed, and clocks move on.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.accounts.v1 import limits_pb2
from services.accounts.limits.arithmetic import grant
from services.common.limit_windows import Window
from services.inference.allowances.allowance import Allowance, Claim

WORKERS = st.integers(0, 1)
SLOT_LEASE_MS = 30_000


@dataclass
class Table:
    """The LimitService's table for one allowance."""

    limit: int
    rows: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)

    def answer(self, holder: str, claim: Claim, now_ms: int) -> tuple[int, int]:
        start = claim.window.start_ms
        others = sum(
            amount
            for (window, other), (amount, ends_ms) in self.rows.items()
            if window == start and other != holder and ends_ms > now_ms
        )
        free = self.limit - others - claim.held_amount
        if claim.releases:
            before = self.rows.get((start, ""), (0, 0))[0]
            self.rows[start, ""] = before + claim.held_amount, claim.ends_at_ms
            self.rows.pop((start, holder), None)
            return 0, max(0, free)
        granted, remaining = grant(
            free,
            claim.amount,
            claim.min_amount,
            claim.prefetch_amount,
            overdraws=claim.overdraws,
        )
        self.rows[start, holder] = claim.held_amount + granted, claim.ends_at_ms
        return granted, remaining


@dataclass
class Worker:
    """A worker with one allowance, and perhaps a claim that is under way."""

    holder: str
    allowance: Allowance
    claim: Claim | None = None
    answer: tuple[int, int] | None = None


class Windows(RuleBasedStateMachine):
    """Requests, of which each window has so many."""

    measure = limits_pb2.MEASURE_REQUESTS_PER_MINUTE
    limit = 6

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_700_000_000_000
        self.table = Table(self.limit)
        self.born = 0
        self.workers = [self.new_worker() for _ in range(2)]
        self.passed: dict[Window, int] = defaultdict(int)

    def new_worker(self) -> Worker:
        self.born += 1
        made = Allowance(
            self.measure,
            self.limit,
            fresh_ms=1_000,
            slot_lease_ms=SLOT_LEASE_MS,
            now_ms=self.now_ms,
        )
        return Worker(f"worker_{self.born}", made)

    @rule(at=WORKERS, amount=st.integers(1, 3))
    def request(self, at: int, amount: int) -> None:
        if not self.passes(at, amount):
            self.workers[at].allowance.want(amount)
            self.workers[at].allowance.stop_waiting()

    @rule(at=WORKERS, amount=st.integers(1, 3), is_used=st.booleans())
    def request_and_wait(self, at: int, amount: int, is_used: bool) -> None:
        if self.passes(at, amount):
            return
        self.answer(at)
        self.workers[at].allowance.want(amount)
        self.claim(at, releases=False)
        self.reach_the_table(at)
        self.answer(at)
        self.workers[at].allowance.stop_waiting()
        if is_used:
            self.passes(at, amount)

    def passes(self, at: int, amount: int) -> bool:
        one = self.workers[at].allowance
        one.advance(self.now_ms)
        if one.available < amount:
            return False
        one.take(amount, self.now_ms)
        self.passed[one.window] += amount
        return True

    @rule(at=WORKERS, releases=st.booleans())
    def claim(self, at: int, releases: bool) -> None:
        worker = self.workers[at]
        if worker.claim is None:
            worker.claim = worker.allowance.next_claim(self.now_ms, releases=releases)

    @rule(at=WORKERS)
    def reach_the_table(self, at: int) -> None:
        worker = self.workers[at]
        if worker.claim is not None and worker.answer is None:
            worker.answer = self.table.answer(worker.holder, worker.claim, self.now_ms)

    @rule(at=WORKERS)
    def answer(self, at: int) -> None:
        worker = self.workers[at]
        if worker.answer is not None:
            worker.allowance.apply_grant(*worker.answer, self.limit, self.now_ms)
            worker.claim = worker.answer = None

    @rule(at=WORKERS)
    def lose_the_answer(self, at: int) -> None:
        worker = self.workers[at]
        if worker.claim is not None and not worker.claim.releases:
            worker.allowance.failed()
            worker.claim = worker.answer = None

    @rule(at=WORKERS)
    def tick(self, at: int) -> None:
        self.workers[at].allowance.tick()
        self.claim(at, releases=False)

    @rule(at=WORKERS)
    def kill(self, at: int) -> None:
        self.workers[at] = self.new_worker()

    @rule(ms=st.sampled_from([1, 900, 60_000]))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @invariant()
    def no_window_is_exceeded(self) -> None:
        assert max(self.passed.values(), default=0) <= self.limit


class Reservations(RuleBasedStateMachine):
    """Money that is reserved, settled with at most as much, and of which one request may have more.

    The spent and the reserved amounts of requests that a killed worker had in progress stay.
    """

    limit = 10

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_700_000_000_000
        self.table = Table(self.limit)
        self.born = 0
        self.workers = [self.new_worker() for _ in range(2)]
        self.in_progress: list[list[int]] = [[], []]
        self.total = 0  # spent and reserved, of all workers that ever were
        self.largest = 0

    def new_worker(self) -> Worker:
        self.born += 1
        measure = limits_pb2.MEASURE_SPEND_PER_MONTH
        made = Allowance(
            measure,
            self.limit,
            fresh_ms=1_000,
            slot_lease_ms=SLOT_LEASE_MS,
            now_ms=self.now_ms,
        )
        return Worker(f"worker_{self.born}", made)

    def claim(self, at: int, *, is_lost: bool = False) -> None:
        worker = self.workers[at]
        claim = worker.allowance.next_claim(self.now_ms)
        if claim is None:
            return
        answer = self.table.answer(worker.holder, claim, self.now_ms)
        if is_lost:
            worker.allowance.failed()
        else:
            worker.allowance.apply_grant(*answer, self.limit, self.now_ms)

    def reserve(self, at: int, amount: int) -> bool:
        one = self.workers[at].allowance
        if not one.admits(amount, self.now_ms):
            return False
        one.take(amount, self.now_ms)
        self.total += amount
        self.largest = max(self.largest, amount)
        return True

    @rule(at=WORKERS, amounts=st.lists(st.integers(1, 15), min_size=1, max_size=4))
    def begin(self, at: int, amounts: list[int]) -> None:
        waiting = []
        one = self.workers[at].allowance
        for amount in amounts:
            if self.reserve(at, amount):
                self.in_progress[at].append(amount)
            else:
                one.want(amount)
                waiting.append(amount)
        self.claim(at)
        for amount in waiting:
            one.stop_waiting()
            if self.reserve(at, amount):
                self.in_progress[at].append(amount)

    @rule(at=WORKERS, more=st.integers(1, 15))
    def extend(self, at: int, more: int) -> None:
        if not self.in_progress[at]:
            return
        one, before = self.workers[at].allowance, self.in_progress[at][0]
        if not one.admits(more, self.now_ms):
            one.want(more, before)
            self.claim(at)
            one.stop_waiting()
        if one.admits(more, self.now_ms):
            one.take(more, self.now_ms)
            self.total += more
            self.in_progress[at][0] += more
            self.largest = max(self.largest, before + more)

    @rule(at=WORKERS, share=st.floats(0, 1))
    def end(self, at: int, share: float) -> None:
        if self.in_progress[at]:
            reserved = self.in_progress[at].pop()
            used = int(share * reserved)
            self.workers[at].allowance.settle(reserved, used, self.now_ms)
            self.total -= reserved - used

    @rule(at=WORKERS, is_lost=st.booleans())
    def tick(self, at: int, is_lost: bool) -> None:
        self.workers[at].allowance.tick()
        self.claim(at, is_lost=is_lost)

    @rule(at=WORKERS)
    def kill(self, at: int) -> None:
        self.workers[at] = self.new_worker()
        self.in_progress[at] = []

    @rule(ms=st.sampled_from([1, 900, SLOT_LEASE_MS]))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @invariant()
    def at_most_one_reservation_is_over(self) -> None:
        assert self.total < self.limit + self.largest


class Slots(RuleBasedStateMachine):
    """Requests under way; workers renew their leases in time, but for those that were killed."""

    limit = 2

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_700_000_000_000
        self.table = Table(self.limit)
        self.born = 0
        self.workers = [self.new_worker() for _ in range(2)]

    def new_worker(self) -> Worker:
        self.born += 1
        measure = limits_pb2.MEASURE_CONCURRENT_REQUESTS
        made = Allowance(
            measure,
            self.limit,
            fresh_ms=1_000,
            slot_lease_ms=SLOT_LEASE_MS,
            now_ms=self.now_ms,
        )
        return Worker(f"worker_{self.born}", made)

    def renew(self, worker: Worker) -> None:
        claim = worker.allowance.next_claim(self.now_ms)
        if claim is not None:
            answer = self.table.answer(worker.holder, claim, self.now_ms)
            worker.allowance.apply_grant(*answer, self.limit, self.now_ms)

    @rule(at=WORKERS, waits=st.booleans())
    def begin(self, at: int, waits: bool) -> None:
        worker = self.workers[at]
        one = worker.allowance
        one.advance(self.now_ms)
        if one.available < 1 and waits:
            one.want(1)
            self.renew(worker)
            one.stop_waiting()
        if one.available >= 1:
            one.take(1, self.now_ms)

    @rule(at=WORKERS)
    def end(self, at: int) -> None:
        one = self.workers[at].allowance
        if one.used:
            one.settle(1, 0, self.now_ms)

    @rule(at=WORKERS)
    def kill(self, at: int) -> None:
        self.workers[at] = self.new_worker()

    @rule(ms=st.sampled_from([1_000, SLOT_LEASE_MS // 4]))
    def wait(self, ms: int) -> None:
        self.now_ms += ms
        for worker in self.workers:
            worker.allowance.tick()
            self.renew(worker)

    @precondition(lambda self: not any(worker.allowance.used for worker in self.workers))
    @rule()
    def all_slots_come_back(self) -> None:
        for _ in range(6):
            self.wait(SLOT_LEASE_MS // 4)
        one = self.workers[0].allowance
        one.want(self.limit)
        self.renew(self.workers[0])
        one.stop_waiting()
        assert one.available == self.limit

    @invariant()
    def no_more_are_under_way_than_may(self) -> None:
        assert sum(worker.allowance.used for worker in self.workers) <= self.limit


_SETTINGS = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestWindows = Windows.TestCase
TestWindows.settings = _SETTINGS
TestReservations = Reservations.TestCase
TestReservations.settings = _SETTINGS
TestSlots = Slots.TestCase
TestSlots.settings = _SETTINGS
