import asyncio

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.limits.arithmetic import UNLIMITED, Granted
from services.accounts.limits.leases import AllowanceClaim, ClaimResult, LeaseRepository
from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.limits.tables import allowances
from services.common.storage.database import reading
from tests.manual_clock import ManualClock

NOW_S = 1_700_000_000.0
MINUTE_MS = 1_699_999_980_000
END_MS = MINUTE_MS + 60_000
TEAM = AllowanceClaim(SubjectKind.TEAM, "team_1", "requests_per_minute", MINUTE_MS, END_MS, 0)
MONEY = AllowanceClaim(
    SubjectKind.TEAM, "team_1", "spend_per_day_pusd", MINUTE_MS, END_MS, 0, overdraws=True
)
SLOTS = AllowanceClaim(
    SubjectKind.TEAM, "team_1", "concurrent_requests", 0, int(1000 * NOW_S) + 30_000, 0
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S)


@pytest.fixture
async def leases(engine: AsyncEngine, clock: ManualClock) -> LeaseRepository:
    """A team of 100 requests a minute, three at once."""
    limits = UsageLimits(requests_per_minute=100, concurrent_requests=3, spend_per_day_pusd=500)
    await LimitRepository(engine, clock).set(SubjectKind.TEAM, "team_1", limits)
    return LeaseRepository(engine, clock)


async def _leased(leases: LeaseRepository, holder: str, claim: AllowanceClaim) -> ClaimResult:
    [lease] = await leases.lease(holder, [claim])
    return lease


async def _lease(
    leases: LeaseRepository, holder: str, claim: AllowanceClaim
) -> tuple[Granted, int | None]:
    lease = await _leased(leases, holder, claim)
    return lease.granted, lease.limit


def _granted(amount: int, remaining: int, limit: int = 100) -> tuple[Granted, int]:
    return Granted(amount, remaining), limit


async def test_workers_share_what_is_there(leases: LeaseRepository) -> None:
    wants = TEAM._replace(amount=60, min_amount=1)
    assert await _lease(leases, "a", wants) == _granted(60, 40)
    assert await _lease(leases, "b", wants) == _granted(40, 0)
    assert await _lease(leases, "c", wants) == _granted(0, 0)


async def test_what_a_worker_no_longer_holds_is_others(leases: LeaseRepository) -> None:
    await _lease(leases, "a", TEAM._replace(amount=100, min_amount=1))
    assert await _lease(leases, "a", TEAM._replace(held_amount=30)) == _granted(0, 70)
    assert await _lease(leases, "b", TEAM._replace(amount=99, min_amount=1)) == _granted(70, 0)


async def test_a_claim_that_is_repeated_counts_once(leases: LeaseRepository) -> None:
    wants = TEAM._replace(held_amount=10, amount=20, min_amount=1)
    assert await _lease(leases, "a", wants) == _granted(20, 70)
    assert await _lease(leases, "a", wants) == _granted(20, 70)


async def test_what_was_used_beyond_the_limit_is_kept(leases: LeaseRepository) -> None:
    assert await _lease(leases, "a", TEAM._replace(held_amount=130)) == _granted(0, -30)
    assert await _lease(
        leases, "a", TEAM._replace(held_amount=130, amount=1, min_amount=1)
    ) == _granted(0, -30)
    assert await _lease(leases, "b", TEAM._replace(amount=1, min_amount=1)) == _granted(0, -30)


async def test_windows_subjects_and_measures_are_apart(
    leases: LeaseRepository, engine: AsyncEngine, clock: ManualClock
) -> None:
    await LimitRepository(engine, clock).set(
        SubjectKind.USER, "team_1", UsageLimits(requests_per_minute=5)
    )
    await _lease(leases, "a", TEAM._replace(amount=100, min_amount=1))
    after = TEAM._replace(
        window_start_ms=END_MS, ends_at_ms=END_MS + 60_000, amount=100, min_amount=1
    )
    claims = [after, SLOTS._replace(amount=9), TEAM._replace(kind=SubjectKind.USER, amount=9)]
    assert [(one.granted, one.limit) for one in await leases.lease("b", claims)] == [
        _granted(100, 0),
        _granted(3, 0, 3),
        _granted(5, 0, 5),
    ]


async def test_without_a_limit_all_is_granted(leases: LeaseRepository) -> None:
    nobody = TEAM._replace(subject_id="team_2", amount=10**9, min_amount=10**9)
    assert await _lease(leases, "a", nobody) == (
        Granted(10**9, UNLIMITED - 10**9),
        None,
    )
    of_a_measure = TEAM._replace(measure="tokens_per_minute", amount=10**9)
    assert (await _leased(leases, "a", of_a_measure)).granted.amount == 10**9


async def test_slots_of_a_worker_that_died_come_back(
    leases: LeaseRepository, clock: ManualClock
) -> None:
    await _lease(leases, "killed", SLOTS._replace(amount=3, min_amount=1))
    clock.now_s += 29.999
    assert await _lease(leases, "b", SLOTS._replace(amount=1, min_amount=1)) == _granted(0, 0, 3)
    clock.now_s += 0.001
    assert await _lease(leases, "b", SLOTS._replace(amount=1, min_amount=1)) == _granted(1, 2, 3)


async def test_slots_that_are_renewed_stay(leases: LeaseRepository, clock: ManualClock) -> None:
    await _lease(leases, "a", SLOTS._replace(amount=3, min_amount=1))
    await _lease(leases, "a", SLOTS._replace(held_amount=3, ends_at_ms=SLOTS.ends_at_ms + 20_000))
    clock.now_s += 40
    assert await _lease(leases, "b", SLOTS._replace(amount=1, min_amount=1)) == _granted(0, 0, 3)


async def test_what_a_worker_closes_counts_until_the_window_ends(leases: LeaseRepository) -> None:
    for holder in "ab":
        await _lease(leases, holder, TEAM._replace(amount=20, min_amount=1))
    for holder in "ab":
        await _lease(leases, holder, TEAM._replace(held_amount=15, releases=True))
    assert await _lease(leases, "a", TEAM._replace(amount=100, min_amount=1)) == _granted(70, 0)


async def test_one_reservation_may_exceed_the_limit(leases: LeaseRepository) -> None:
    wants = MONEY._replace(amount=800, min_amount=800)
    assert await _lease(leases, "a", wants) == _granted(800, -300, 500)
    assert await _lease(leases, "b", wants) == _granted(0, -300, 500)
    settled = MONEY._replace(held_amount=499)
    assert await _lease(leases, "a", settled) == _granted(0, 1, 500)
    assert await _lease(leases, "b", wants) == _granted(800, -799, 500)


async def test_what_is_spent_is_told_from_what_is_reserved(
    leases: LeaseRepository, clock: ManualClock
) -> None:
    reserves = MONEY._replace(
        held_amount=200,
        amount=100,
        min_amount=100,
        reserved_amount=150,
        reserved_until_ms=int(1000 * clock.now_s) + 4_000,
    )
    assert (await _leased(leases, "a", reserves)).spent == 50
    assert (await _leased(leases, "b", MONEY._replace(held_amount=7))).spent == 57
    # A worker that no longer renews may have spent what it had reserved.
    clock.now_s += 4
    assert (await _leased(leases, "b", MONEY._replace(held_amount=7))).spent == 307


async def test_rows_of_windows_that_ended_are_deleted(
    leases: LeaseRepository, engine: AsyncEngine, clock: ManualClock
) -> None:
    lasting = SLOTS._replace(amount=1, ends_at_ms=SLOTS.ends_at_ms + 10**6)
    await _lease(leases, "a", TEAM._replace(amount=1))
    clock.now_s += 40 + 120
    await _lease(leases, "a", lasting)
    assert await _measures(engine) == {"requests_per_minute", "concurrent_requests"}
    clock.now_s += 61
    await _lease(leases, "a", lasting)
    assert await _measures(engine) == {"concurrent_requests"}


async def _measures(engine: AsyncEngine) -> set[str]:
    async with reading(engine) as connection:
        return set(await connection.scalars(select(allowances.c.measure)))


async def test_claims_at_once_never_get_more_than_there_is(
    leases: LeaseRepository, engine: AsyncEngine, clock: ManualClock
) -> None:
    others = [LeaseRepository(engine, clock) for _ in range(4)]
    answers = await asyncio.gather(
        *(
            repository.lease(f"worker_{n}", [SLOTS._replace(amount=1), TEAM._replace(amount=9)])
            for n, repository in enumerate(others * 5)
        )
    )
    slots, requests = (
        sum(lease.granted.amount for lease in one) for one in zip(*answers, strict=True)
    )
    assert (slots, requests) == (3, 100)


async def test_limits_of_settings_are_exact_from_the_first_claim(engine: AsyncEngine) -> None:
    # There is no row of the subject to lock yet.
    claim = AllowanceClaim(
        *(SubjectKind.DEPLOYMENT, "p/m", "requests_per_minute", MINUTE_MS, END_MS, 0),
        amount=60,
        min_amount=1,
        limit=100,
    )
    workers = LeaseRepository(engine, ManualClock(NOW_S))
    results = await asyncio.gather(*(_lease(workers, name, claim) for name in "abc"))
    assert sorted(granted.amount for granted, _ in results) == [0, 40, 60]
    # The limit is that of the worker's settings, which may have been reloaded.
    raised = claim._replace(limit=200, held_amount=0, amount=1)
    assert await _lease(workers, "d", raised) == _granted(1, 99, 200)
