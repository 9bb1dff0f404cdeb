"""Budgets in the database: what was spent before they were set, and their soft limits."""

import asyncio
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.limits_pb2 import MEASURE_SPEND_PER_DAY
from services.accounts.admin.limits import LimitAdministration
from services.accounts.limits.leases import AllowanceClaim, LeaseRepository
from services.accounts.limits.notifications import PAUSES_S, BudgetNotifier
from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.limits.soft_limits import SoftLimits
from services.accounts.limits.tables import notifications
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


class Sent:
    """A webhook that accepts nothing before it is told to."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.answer = "status 500"

    async def send(self, message_id: str, body: bytes) -> str:
        self.ids.append(message_id)
        return self.answer

    async def close(self) -> None:
        pass


async def _notified(engine: AsyncEngine, clock: ManualClock, subject_id: str) -> None:
    """Reach a soft limit, and commit a notification."""
    await LimitRepository(engine, clock).set(
        SubjectKind.USER,
        subject_id,
        UsageLimits(spend_per_day_pusd=100, spend_per_week_pusd=10**6, soft_limit_percent=80),
    )
    soft_limits = SoftLimits(clock, CollectorRegistry(), notifies=True)
    leases = LeaseRepository(engine, clock, soft_limits)
    claim = AllowanceClaim(
        *(SubjectKind.USER, subject_id, "spend_per_day_pusd", TODAY * DAY_MS),
        *((TODAY + 1) * DAY_MS, 79),
        overdraws=True,
    )
    for measure in ("spend_per_day_pusd", "spend_per_week_pusd"):
        await leases.lease("worker", [claim._replace(measure=measure)])
    assert not soft_limits.has_new.is_set()
    # What is reserved does not count.
    await leases.lease("worker", [claim._replace(held_amount=99, reserved_amount=20)])
    assert not soft_limits.has_new.is_set()
    for _ in range(2):
        await leases.lease("worker", [claim._replace(held_amount=80)])
        await leases.lease("other", [claim._replace(held_amount=5)])
    assert soft_limits.has_new.is_set()


async def test_a_notification_survives_a_restart(engine: AsyncEngine, clock: ManualClock) -> None:
    await _notified(engine, clock, "user_1")
    webhook = Sent()
    # Processes that start later, of which only one sends at a time.
    notifiers = [
        BudgetNotifier(engine, clock, webhook, asyncio.Event(), CollectorRegistry())
        for _ in range(2)
    ]
    for attempt, pause_s in enumerate(PAUSES_S):
        await asyncio.gather(*(notifier.deliver() for notifier in notifiers))
        assert len(webhook.ids) == attempt + 1
        clock.now_s += pause_s
        if attempt == 2:
            break
    webhook.answer = ""
    for notifier in notifiers:
        await notifier.deliver()
        clock.now_s += 10 * max(PAUSES_S)
    assert len(webhook.ids) == 4 and len({*webhook.ids}) == 1


async def test_a_notification_is_dropped_after_its_attempts(
    engine: AsyncEngine, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await _notified(engine, clock, "user_1")
    webhook, registry = Sent(), CollectorRegistry()
    notifier = BudgetNotifier(engine, clock, webhook, asyncio.Event(), registry)
    for pause_s in (*PAUSES_S, *PAUSES_S):
        await notifier.deliver()
        clock.now_s += pause_s
    assert len(webhook.ids) == len(PAUSES_S)
    assert "dropped" in caplog.text
    name = "gateway_budget_notifications_total"
    counted = {
        outcome: registry.get_sample_value(name, {"outcome": outcome})
        for outcome in ("failed", "dropped")
    }
    assert counted == {"failed": len(PAUSES_S) - 1, "dropped": 1}
    # A process that was killed in its last attempt leaves the row.
    await _notified(engine, clock, "user_2")
    interrupted = update(notifications).values(attempts=len(PAUSES_S))
    await write(engine, lambda connection: connection.execute(interrupted))
    await notifier.deliver()
    assert await notifier._due() == [] and len(webhook.ids) == len(PAUSES_S)


async def test_corrections_hold_for_all_workers_and_one_window(
    engine: AsyncEngine, clock: ManualClock
) -> None:
    owner = await AccountRepository(engine).identify(
        await AccountRepository(engine).create_key("a")
    )
    subject = SubjectKind.USER, owner.user_id
    limits, leases = LimitAdministration(engine, clock), LeaseRepository(engine, clock)
    await limits.set(*subject, UsageLimits(spend_per_day_pusd=100))
    claim = AllowanceClaim(
        *(*subject, "spend_per_day_pusd", TODAY * DAY_MS, (TODAY + 1) * DAY_MS, 60),
        reserved_amount=10,
        reserved_until_ms=clock.now_ms() + 4_000,
        overdraws=True,
    )
    for worker in ("a", "b"):
        await leases.lease(worker, [claim])
    usage = await limits.top_up_budget(*subject, MEASURE_SPEND_PER_DAY, 30)
    assert (usage.limit, usage.used, usage.reserved, usage.remaining) == (130, 100, 20, 10)
    usage = await limits.reset_budget(*subject, MEASURE_SPEND_PER_DAY)
    assert (usage.limit, usage.used, usage.reserved, usage.remaining) == (130, 0, 20, 110)
    assert usage.reset_at_ms == clock.now_ms()
    [lease] = await leases.lease("c", [claim._replace(held_amount=5, reserved_amount=5)])
    assert (lease.granted.remaining, lease.limit, lease.spent) == (105, 130, 0)
    clock.now_s += 86_400
    _, [usage] = await limits.get_with_usage(*subject)
    assert (usage.limit, usage.used, usage.remaining) == (100, 0, 100)
