"""Soft limits: budgets that are nearly spent are recorded once per window and amount.

A soft limit is found reached in the transaction that counts the spending, and recorded there: in
the row of the limits, which is locked, in the audit log and, if there is a webhook, as a
notification to be sent. So neither a failure nor a restart loses it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from prometheus_client import CollectorRegistry
from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.accounts.admin.audit import Actor, Subject, record
from services.accounts.limits.rules import BUDGETS
from services.accounts.limits.tables import limits, notifications
from services.common import ids
from services.common.clock import Clock
from services.common.process.metrics import Counter

_ACTOR = Actor("gateway")


class ReachedSoftLimit(NamedTuple):
    """A soft limit that was reached.

    Attributes:
        kind: kind of the subject.
        subject_id: id of the subject.
        measure: the column of `limits` with the budget.
        window_start_ms: start of the window in Unix milliseconds.
        window_end_ms: end of the window in Unix milliseconds.
        limit: the budget in 10^-12 US dollars.
        spent: what has been spent of it.
        percent: the soft limit as a percentage of the budget.
    """

    kind: str
    subject_id: str
    measure: str
    window_start_ms: int
    window_end_ms: int
    limit: int
    spent: int
    percent: int

    @property
    def amount(self) -> int:
        """The soft limit in 10^-12 US dollars."""
        return soft_amount(self.limit, self.percent)

    def is_recorded(self, row: Mapping[Any, Any]) -> bool:
        """Return whether the row of the limits has this window and this amount."""
        return _recorded(row).get(self.measure) == [self.window_start_ms, self.amount]


def soft_amount(limit: int, percent: int) -> int:
    """Return the soft limit of a budget, rounded up; at least 1."""
    return max(1, -(-limit * percent // 100))


def reached(
    row: Mapping[Any, Any],
    measure: str,
    window: tuple[int, int],
    limit: int | None,
    spent: int,
) -> ReachedSoftLimit | None:
    """Return the soft limit of a budget if it is reached and not recorded yet.

    Args:
        row: the row of the limits.
        measure: the column of `limits`.
        window: start and end of the window in Unix milliseconds.
        limit: the amount of the measure; None without a limit.
        spent: what has been spent in the window.
    """
    percent = row.get("soft_limit_percent")
    if percent is None or limit is None or measure not in BUDGETS:
        return None
    if spent < soft_amount(limit, percent):
        return None
    soft_limit = ReachedSoftLimit(
        row["subject_kind"], row["subject_id"], measure, *window, limit, spent, percent
    )
    return None if soft_limit.is_recorded(row) else soft_limit


def without_record(soft_limits_reached: str, measure: str) -> str:
    """Return the column of the recorded soft limits without one measure."""
    recorded = orjson.loads(soft_limits_reached)
    recorded.pop(measure, None)
    return orjson.dumps(recorded).decode()


class SoftLimits:
    """Records reached soft limits.

    Args:
        clock: the clock.
        registry: registry of the metric.
        notifies: whether there is a webhook.
        new_id: makes ids.

    Attributes:
        has_new: set when there is a new notification.
        notifies: whether reached soft limits are stored as notifications.
    """

    def __init__(
        self,
        clock: Clock,
        registry: CollectorRegistry,
        *,
        notifies: bool = False,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self.has_new = asyncio.Event()
        self._clock = clock
        self.notifies = notifies
        self._new_id = new_id
        self._reached = Counter(
            "gateway_budget_soft_limits_reached",
            "Budgets that reached their soft limit, by limit, such as team.spend_per_month.",
            ("limit",),
            registry=registry,
        )

    async def record(
        self,
        connection: AsyncConnection,
        rows: Mapping[tuple[str, str], Mapping[Any, Any]],
        found: Sequence[ReachedSoftLimit],
    ) -> None:
        """Record reached soft limits in the current transaction, which has locked the rows."""
        now_ms = self._clock.now_ms()
        recorded: dict[tuple[str, str], dict[str, list[int]]] = {}
        for one in found:
            key = one.kind, one.subject_id
            windows = recorded.setdefault(key, _recorded(rows[key]))
            windows[one.measure] = [one.window_start_ms, one.amount]
            name = one.measure.removesuffix("_pusd")
            entry = {"budget": name, "limit_pusd": one.limit, "spent_pusd": one.spent}
            await record(
                connection,
                self._clock,
                self._new_id,
                _ACTOR,
                "budget.soft_limit_reached",
                Subject(*key),
                after={**entry, "soft_limit_percent": one.percent},
            )
            if self.notifies:
                await connection.execute(insert(notifications).values(self._row(one, now_ms)))
        for (kind, subject_id), windows in recorded.items():
            await connection.execute(
                update(limits)
                .filter_by(subject_kind=kind, subject_id=subject_id)
                .values(soft_limits_reached=orjson.dumps(windows).decode())
            )

    def count(self, found: Sequence[ReachedSoftLimit]) -> None:
        """Count soft limits that have been recorded, and have notifications sent."""
        for one in found:
            self._reached.labels(f"{one.kind}.{one.measure.removesuffix('_pusd')}").inc()
        if found and self.notifies:
            self.has_new.set()

    def _row(self, one: ReachedSoftLimit, now_ms: int) -> dict[str, Any]:
        """Return the row of a notification."""
        return {
            "id": self._new_id("msg_"),
            "subject_kind": one.kind,
            "subject_id": one.subject_id,
            "measure": one.measure,
            "window_start_ms": one.window_start_ms,
            "window_end_ms": one.window_end_ms,
            "limit_pusd": one.limit,
            "spent_pusd": one.spent,
            "soft_limit_percent": one.percent,
            "reached_at_ms": now_ms,
            "attempts": 0,
            "next_attempt_at_ms": now_ms,
        }


def _recorded(row: Mapping[Any, Any]) -> dict[str, list[int]]:
    """Return the windows and amounts of recorded soft limits, by measure."""
    text = row["soft_limits_reached"]
    return {} if text is None else orjson.loads(text)
