"""Admission at one worker, with a LimitService in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Grant, LimitState, SubjectLimits
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import RouteInfo
from services.accounts.limits.arithmetic import grant
from services.common.errors import GatewayError, unavailable
from services.common.messages.passthrough_answer import AnswerRoute
from services.inference.allowances.admission import Admission, Permit
from services.inference.allowances.allowance import Claim
from services.inference.allowances.leaser import Key, Leaser
from services.inference.allowances.needs import RequestLimits, Reservation
from tests.waiting import until

NOW_MS = 1_700_000_000_000
MINUTE_END_MS = 1_700_000_040_000
USER = SubjectLimits(kind=limits_pb2.SUBJECT_KIND_USER, id="user_1")
TEAM = SubjectLimits(kind=limits_pb2.SUBJECT_KIND_TEAM, id="team_1")


@dataclass
class FakeLimits:
    """Grants what is free of limits that all allowances share, and notes what was claimed."""

    limit: int
    held: dict[Key, int] = field(default_factory=dict)
    others: int = 0
    fails: bool = False
    calls: list[Sequence[tuple[Key, Claim]]] = field(default_factory=list)

    async def lease(self, claims: Sequence[tuple[Key, Claim]]) -> list[Grant]:
        self.calls.append(claims)
        await asyncio.sleep(0)
        if self.fails:
            raise unavailable("no database")
        grants = []
        for key, claim in claims:
            free = self.limit - self.others - claim.held_amount
            granted, remaining = grant(
                free,
                claim.amount,
                claim.min_amount,
                claim.prefetch_amount,
                overdraws=claim.overdraws,
            )
            self.held[key] = claim.held_amount + granted
            spent = self.others + claim.held_amount - claim.reserved_amount
            grants.append(
                Grant(granted=granted, remaining=remaining, limit=self.limit, spent=spent)
            )
        return grants


class Worker:
    """A worker whose clock stands still, and whose pauses do what a test wants."""

    def __init__(self, limits: FakeLimits) -> None:
        self.pauses: list[float] = []
        self.on_pause: Callable[[], object] = list
        # No tick comes while a test runs.
        self.leaser = Leaser(limits, lambda: NOW_MS, tick_s=3_600, slot_lease_s=30)
        self._admission = Admission(self.leaser, lambda: NOW_MS, self._pause)

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.on_pause()

    async def admit(self, *limits: SubjectLimits, tokens: int = 0, cost: int = 0) -> Permit:
        return await self._admission.admit(RequestLimits(limits), Reservation(1, tokens, cost))


@pytest.fixture
def limits() -> FakeLimits:
    return FakeLimits(limit=3)


@pytest.fixture
async def worker(limits: FakeLimits) -> AsyncIterator[Worker]:
    one = Worker(limits)
    yield one
    await one.leaser.close()


def _with(subject: SubjectLimits, **amounts: int) -> SubjectLimits:
    limited = SubjectLimits(**amounts)
    limited.MergeFrom(subject)
    return limited


async def test_requests_at_once_are_claimed_in_one_call(worker: Worker, limits: FakeLimits) -> None:
    user = _with(USER, requests_per_minute=3)
    outcomes = await asyncio.gather(*(worker.admit(user) for _ in range(9)), return_exceptions=True)
    assert [type(one) for one in outcomes] == [Permit] * 3 + [GatewayError] * 6
    assert len(limits.calls) == 1
    # What is known to be exhausted is not asked for again at once.
    with pytest.raises(GatewayError) as raised:
        await worker.admit(user)
    assert raised.value.reason == errors_pb2.REASON_RATE_LIMITED
    assert raised.value.limit == "user.requests_per_minute"
    assert len(limits.calls) == 1


async def test_a_refused_request_takes_nothing_of_other_limits(
    worker: Worker, limits: FakeLimits
) -> None:
    team, user = _with(TEAM, requests_per_minute=3), _with(USER, concurrent_requests=3)
    permits = [await worker.admit(user) for _ in range(3)]
    for _ in range(5):
        with pytest.raises(GatewayError, match="the limit of the user, 3 concurrent requests"):
            await worker.admit(team, user)
    for permit in permits:
        permit.end(0, 0)
    for _ in range(3):
        await worker.admit(team, user)


async def test_slots_that_others_may_return_are_waited_for(
    worker: Worker, limits: FakeLimits
) -> None:
    user = _with(USER, concurrent_requests=3)
    limits.others = 3

    def return_one() -> None:
        limits.others = 2

    worker.on_pause = return_one
    await worker.admit(user)
    assert worker.pauses == [pytest.approx(0.15)]
    worker.on_pause = list
    limits.others = 3
    with pytest.raises(GatewayError):
        await worker.admit(user)


async def test_a_permit_ends_once(worker: Worker, limits: FakeLimits) -> None:
    user = _with(USER, concurrent_requests=1)
    limits.limit = 1
    permit = await worker.admit(user)
    permit.end(0, 0)
    permit.end(0, 0)
    await worker.admit(user)
    with pytest.raises(GatewayError):
        await worker.admit(user)


async def test_of_many_at_once_one_exceeds_the_budget(worker: Worker, limits: FakeLimits) -> None:
    limits.limit = 1_000
    user = _with(USER, spend_per_day_pusd=1_000)
    outcomes = await asyncio.gather(
        *(worker.admit(user, cost=2_000) for _ in range(40)), return_exceptions=True
    )
    [permit] = [one for one in outcomes if isinstance(one, Permit)]
    refused = [one for one in outcomes if isinstance(one, GatewayError)]
    assert len(refused) == 39
    assert {(one.reason, one.retry_after_s) for one in refused} == {
        (errors_pb2.REASON_RATE_LIMITED, 1)
    }
    assert "is reserved by requests in progress; try again in 1 s" in refused[0].message
    permit.end(0, 2_000)
    with pytest.raises(GatewayError, match="has spent its budget") as raised:
        await worker.admit(user, cost=1)
    assert raised.value.reason == errors_pb2.REASON_BUDGET_EXCEEDED
    assert raised.value.retry_after_s is not None and raised.value.retry_after_s > 1


async def test_a_request_fits_once_another_is_settled(worker: Worker, limits: FakeLimits) -> None:
    limits.limit = 1_000
    user = _with(USER, spend_per_day_pusd=1_000)
    permit = await worker.admit(user, cost=2_000)
    permit.end(0, 10)
    again = await worker.admit(user, cost=2_000)
    with pytest.raises(GatewayError):
        await worker.admit(user, cost=1)
    again.end(0, 10)
    await worker.leaser.close()
    assert max(limits.held.values()) == 20


async def test_a_free_request_needs_that_something_is_left(
    worker: Worker, limits: FakeLimits
) -> None:
    limits.limit = 1_000
    user = _with(USER, spend_per_day_pusd=1_000)
    (await worker.admit(user)).end(0, 0)
    (await worker.admit(user, cost=1_000)).end(0, 1_000)
    with pytest.raises(GatewayError):
        await worker.admit(user)


async def test_one_request_may_extend_what_it_has_reserved(
    worker: Worker, limits: FakeLimits
) -> None:
    limits.limit = 1_000
    user = _with(USER, spend_per_day_pusd=1_000)
    permit = await worker.admit(user, cost=600)
    await permit.extend(Reservation(1, 0, 500))
    assert permit.amounts.cost_pusd == 600
    await permit.extend(Reservation(1, 0, 1_200))
    assert permit.amounts.cost_pusd == 1_200
    # It alone has exceeded the budget, and may do so by more.
    await permit.extend(Reservation(1, 0, 1_500))
    with pytest.raises(GatewayError):
        await worker.admit(user, cost=1)
    permit.end(0, 900)
    second = await worker.admit(user, cost=50)
    third = await worker.admit(user, cost=50)
    await third.extend(Reservation(1, 0, 2_000))
    with pytest.raises(GatewayError):
        await second.extend(Reservation(1, 0, 60))
    second.end(0, 50)
    third.end(0, 50)
    await worker.leaser.close()
    assert max(limits.held.values()) == 1_000


async def test_costs_are_claimed_at_once_when_they_exceed_the_lease(
    worker: Worker, limits: FakeLimits
) -> None:
    limits.limit = 1_000
    user = _with(USER, spend_per_day_pusd=1_000)
    permits = [await worker.admit(user, cost=1) for _ in range(2)]
    permits[0].end(0, 900)
    await until(lambda: max(limits.held.values()) >= 900)
    permits[1].end(0, 300)
    with pytest.raises(GatewayError) as raised:
        await worker.admit(user, cost=1)
    assert raised.value.reason == errors_pb2.REASON_BUDGET_EXCEEDED
    assert max(limits.held.values()) == 1_200


async def test_without_an_answer_limited_requests_are_unavailable(
    worker: Worker, limits: FakeLimits
) -> None:
    user = _with(USER, requests_per_minute=3)
    limits.fails = True
    for _ in range(2):
        with pytest.raises(GatewayError, match="no database"):
            await worker.admit(user)
    key = Key(USER.kind, USER.id, limits_pb2.MEASURE_REQUESTS_PER_MINUTE)
    assert worker.leaser.allowance(key, 3).is_forgotten(NOW_MS)
    limits.fails = False
    await worker.admit(user)


async def test_a_caller_that_leaves_while_it_waits_takes_nothing(
    worker: Worker, limits: FakeLimits
) -> None:
    user = _with(USER, requests_per_minute=3)
    left = asyncio.create_task(worker.admit(user))
    others = [asyncio.create_task(worker.admit(user)) for _ in range(2)]
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.gather(*others)
    await worker.admit(user)
    with pytest.raises(GatewayError):
        await worker.admit(user)


async def test_a_worker_that_closes_holds_what_it_used(limits: FakeLimits) -> None:
    limits.limit = 1_000
    worker = Worker(limits)
    await worker.admit(_with(USER, tokens_per_minute=1_000), tokens=7)
    await worker.leaser.close()
    [[(_, claim)]] = limits.calls[1:]
    assert (claim.releases, claim.held_amount) == (True, 7)
    with pytest.raises(GatewayError, match="stopping"):
        await worker.admit(_with(TEAM, requests_per_minute=1_000))


async def test_calls_that_fail_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    limits = FakeLimits(limit=3, fails=True)
    now_ms = NOW_MS
    leaser = Leaser(limits, lambda: now_ms, tick_s=3_600, slot_lease_s=30)
    key = Key(limits_pb2.SUBJECT_KIND_USER, "user_1", limits_pb2.MEASURE_REQUESTS_PER_MINUTE)

    async def fail_in_the_background() -> None:
        before = len(limits.calls)
        leaser.allowance(key, 3).want(1)
        leaser.note(key)
        await until(lambda: len(limits.calls) > before)
        await asyncio.sleep(0)

    for _ in range(3):
        await fail_in_the_background()
    now_ms += 60_000
    await fail_in_the_background()
    lines = [line.__dict__ for line in caplog.records if "could not be leased" in line.message]
    assert [(line["error"], line["failures"]) for line in lines] == [
        ("no database", 1),
        ("no database", 3),
    ]
    await leaser.close()


async def test_the_tightest_limit_of_each_measure_is_told(worker: Worker) -> None:
    user = _with(USER, requests_per_minute=3, tokens_per_minute=3, concurrent_requests=3)
    await worker.admit(user, tokens=1)
    permit = await worker.admit(_with(TEAM, requests_per_minute=3), user)
    plain, route = AnswerRoute("model", "provider", "primary", 1, {}), RouteInfo()
    permit.put_limits(plain)
    permit.put_limits(route)
    # Two requests of the user's three, and one of the team's; one token.
    requests, tokens = (
        LimitState(measure=measure, limit=3, remaining=remaining, reset_ms=MINUTE_END_MS)
        for measure, remaining in (
            (limits_pb2.MEASURE_REQUESTS_PER_MINUTE, 1),
            (limits_pb2.MEASURE_TOKENS_PER_MINUTE, 2),
        )
    )
    for reported in ([one.message() for one in plain.limits], route.limits):
        assert sorted(reported, key=lambda one: one.measure) == [requests, tokens]


async def test_a_refusal_tells_the_limits(worker: Worker) -> None:
    user = _with(USER, requests_per_minute=3)
    for _ in range(3):
        await worker.admit(user)
    with pytest.raises(GatewayError) as raised:
        await worker.admit(user)
    [reported] = raised.value.caller_limits
    assert (reported.limit, reported.remaining, reported.reset_ms) == (3, 0, MINUTE_END_MS)


class Minutes:
    """A worker that forgets what a minute leaves as soon as the next has begun."""

    def __init__(self, limits: FakeLimits) -> None:
        self.now_ms = NOW_MS
        self.leaser = Leaser(limits, lambda: self.now_ms, tick_s=0.005, slot_lease_s=30)
        self.admission = Admission(self.leaser, lambda: self.now_ms)

    async def end_the_minute(self, key: Key) -> None:
        """Return when an allowance is another one than in the minute before."""
        before = self.leaser.allowance(key, 3)
        self.now_ms += 60_000
        await until(lambda: self.leaser.allowance(key, 3) is not before)


async def test_what_was_forgotten_is_counted_anew(limits: FakeLimits) -> None:
    worker = Minutes(limits)
    caller = RequestLimits([_with(USER, requests_per_minute=3)])
    key = caller.needs[0].key
    await worker.admission.admit(caller, Reservation())
    await worker.end_the_minute(key)
    permit = await worker.admission.admit(caller, Reservation())
    assert worker.leaser.allowance(key, 3).used == 1
    permit.put_limits(route := AnswerRoute("model", "provider", "primary", 1, {}))
    [reported] = route.limits
    assert (reported.remaining, reported.reset_ms) == (2, MINUTE_END_MS + 60_000)
    await worker.leaser.close()


async def test_what_ends_in_a_later_minute_is_settled_there(limits: FakeLimits) -> None:
    limits.limit = 1_000
    worker = Minutes(limits)
    caller = RequestLimits([_with(USER, tokens_per_minute=1_000)])
    key = caller.needs[0].key
    longer, shorter = [await worker.admission.admit(caller, Reservation(1, 10)) for _ in range(2)]
    worker.now_ms += 60_000
    longer.end(25, 0)
    shorter.end(1, 0)
    assert worker.leaser.allowance(key, 1_000).used == 26
    await worker.leaser.close()
