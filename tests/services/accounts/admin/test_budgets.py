"""Budgets in the database: what was spent before they were set."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.limits import LimitAdministration
from services.accounts.limits.leases import AllowanceClaim, LeaseRepository
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.repository import AccountRepository
from services.accounts.usage.tables import USAGE_SUMS, days
from services.common.limit_windows import DAY_MS
from services.common.storage.database import write
from tests.manual_clock import ManualClock

NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)
TODAY = int(NOW.timestamp()) // 86_400


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW.timestamp())


async def _spent(engine: AsyncEngine, day: int, user: str, team: str, key: str, cost: int) -> None:
    sums = {**dict.fromkeys(USAGE_SUMS, 0), "cost_pusd": cost}
    callers = {"user_id": user, "team_id": team, "key_id": key, "model": "m", "provider": "p"}
    row = insert(days).values(day=day, **callers, **sums)
    await write(engine, lambda connection: connection.execute(row))


@pytest.mark.parametrize(("kind", "used"), [("key", 10), ("user", 30), ("team", 70)])
async def test_spend_since_the_start_of_a_period_counts(
    engine: AsyncEngine, clock: ManualClock, kind: str, used: int
) -> None:
    accounts = AccountRepository(engine)
    owner = await accounts.identify(await accounts.create_key("ada", "lab"))
    user, team, key = owner.user_id, owner.team_id, owner.key_id
    await _spent(engine, TODAY - 3, user, team, key, 10)
    await _spent(engine, TODAY, user, team, "key_2", 20)
    await _spent(engine, TODAY, "user_2", team, "key_3", 40)
    await _spent(engine, TODAY - 4, user, team, key, 1)
    subject = SubjectKind(kind), {"key": key, "user": user, "team": team}[kind]
    limits = LimitAdministration(engine, clock)
    budget = UsageLimits(spend_per_period_pusd=100, period_start_day=TODAY - 3)
    for _ in range(2):
        await limits.set(*subject, budget)
        _, [state] = await limits.get_with_usage(*subject)
        assert (state.used, state.remaining) == (used, 100 - used)
    claim = AllowanceClaim(
        *(*subject, "spend_per_period_pusd", (TODAY - 3) * DAY_MS, 1 << 62, 0),
        amount=200,
        min_amount=1,
    )
    [lease] = await LeaseRepository(engine, clock).lease("worker", [claim])
    assert lease.granted.amount == 100 - used
    [lease] = await LeaseRepository(engine, clock).lease("worker", [claim._replace(period_days=9)])
    assert lease.granted.amount == 100
