"""Resets and top-ups of budgets: rows of allowances with negative amounts, for one window."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.accounts.v1.limits_pb2 import LimitUsage, Measure
from services.accounts.limits.leases import RESET, TOP_UP, allowance_key
from services.accounts.limits.repository import read_limits
from services.accounts.limits.rules import BUDGETS, MAX_AMOUNT, SubjectKind, UsageLimits
from services.accounts.limits.soft_limits import without_record
from services.accounts.limits.tables import allowances, limits
from services.accounts.limits.usage import usage_of_limits
from services.common.errors import invalid
from services.common.limit_windows import MEASURES, window_of
from services.common.storage.database import insert_into


class Budget:
    """A budget in its current window, in a transaction that has locked its limits.

    Attributes:
        usage: its state.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        kind: SubjectKind,
        subject_id: str,
        name: str,
        subject_limits: UsageLimits,
        usage: LimitUsage,
        now_ms: int,
    ) -> None:
        self.usage = usage
        self._connection = connection
        self._row = limits.c.subject_kind == kind.value, limits.c.subject_id == subject_id
        self._name = name
        self._now_ms = now_ms
        period = subject_limits.period
        window = window_of(MEASURES[name], now_ms, period)
        key = allowance_key(kind, subject_id, name, window.start_ms, period.days)
        self._key = dict(zip(allowances.primary_key.columns.keys(), key, strict=False))
        self._ends_at_ms = window.end_ms

    @classmethod
    async def lock(
        cls,
        connection: AsyncConnection,
        kind: SubjectKind,
        subject_id: str,
        measure: Measure.ValueType,
        now_ms: int,
    ) -> "Budget":
        """Lock the limits of a subject, as claims do, and return one of its budgets.

        Raises:
            GatewayError: invalid_request, when there is no such budget.
        """
        await connection.execute(
            select(limits.c.subject_id)
            .filter_by(subject_kind=kind.value, subject_id=subject_id)
            .with_for_update()
        )
        subject_limits = await read_limits(connection, kind, subject_id) or UsageLimits()
        for name in BUDGETS:
            if MEASURES[name] == measure and getattr(subject_limits, name) is not None:
                states = await usage_of_limits(
                    connection, [subject_limits.to_proto(kind, subject_id)], now_ms
                )
                [usage] = [state for state in states if state.measure == measure]
                return cls(connection, kind, subject_id, name, subject_limits, usage, now_ms)
        budgets = ", ".join(
            name.removesuffix("_pusd")
            for name in BUDGETS
            if getattr(subject_limits, name) is not None
        )
        raise invalid(
            "measure",
            f"measure: must be a budget of the {kind.value}, which has: {budgets or 'none'}",
        )

    async def reset(self) -> None:
        """Count from 0 on, and let the soft limit be reached again."""
        values = {"reserved_until_ms": self._now_ms}
        await self._subtract(RESET, self.usage.used, values)
        reached = await self._connection.scalar(
            select(limits.c.soft_limits_reached).where(*self._row)
        )
        if reached is not None:
            without = without_record(reached, self._name)
            await self._connection.execute(
                update(limits).where(*self._row).values(soft_limits_reached=without)
            )

    async def top_up(self, amount: int) -> None:
        """Add an amount in 10^-12 US dollars.

        Raises:
            GatewayError: invalid_request, when the amount is not positive, or the budget would be
                too large.
        """
        if not 0 < amount <= MAX_AMOUNT - self.usage.limit:
            raise invalid(
                "amount_pusd",
                "amount_pusd: must be more than 0, and the budget at most "
                f"{MAX_AMOUNT // 10**12:,} US dollars with it",
            )
        await self._subtract(TOP_UP, amount, {})

    async def _subtract(self, holder: str, amount: int, values: Mapping[str, Any]) -> None:
        """Subtract an amount from the row of a holder."""
        row = {**self._key, "holder": holder, "amount": -amount, "ends_at_ms": self._ends_at_ms}
        inserted = insert_into(self._connection, allowances).values({**row, **values})
        await self._connection.execute(
            inserted.on_conflict_do_update(
                index_elements=[*self._key, "holder"],
                set_={"amount": allowances.c.amount - amount, **values},
            )
        )
