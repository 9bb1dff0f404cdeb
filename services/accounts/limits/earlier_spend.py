"""Spend before a budget was set, which counts in the window that had begun.

It is read from the sums of usage, and becomes a row of allowances that no worker holds.
"""

from typing import NamedTuple

from sqlalchemy import Column, exists, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.accounts.limits.leases import SHARED, allowance_key
from services.accounts.limits.rules import BUDGETS, MAX_AMOUNT, SubjectKind, UsageLimits
from services.accounts.limits.tables import allowances as table
from services.accounts.tables import api_keys
from services.accounts.usage.reporting import cost_columns, picodollars_of
from services.accounts.usage.tables import days, label_days
from services.common.limit_windows import DAY_MS, MEASURES, Window, window_of


class SubjectLabel(NamedTuple):
    """The label of a tag or an end user as a subject of limits; of a tag, `user_id` is ""."""

    name: str
    value: str
    user_id: str = ""


_SUBJECTS: dict[SubjectKind, Column[str]] = {
    SubjectKind.KEY: days.c.key_id,
    SubjectKind.USER: days.c.user_id,
    SubjectKind.TEAM: days.c.team_id,
}


async def add_earlier_spend(
    connection: AsyncConnection,
    kind: SubjectKind,
    subject_id: str,
    limits: UsageLimits,
    now_ms: int,
    label: SubjectLabel | None = None,
) -> None:
    """Count what a subject has spent in the windows of its budgets, where nothing is counted.

    A tag and an end user have a label.
    """
    for budget in BUDGETS:
        if getattr(limits, budget) is None:
            continue
        window = window_of(MEASURES[budget], now_ms, limits.period)
        key = allowance_key(kind, subject_id, budget, window.start_ms, limits.period.days)
        columns = table.primary_key.columns
        is_of_key = [column == part for column, part in zip(columns, key, strict=False)]
        if await connection.scalar(select(exists().where(*is_of_key))):
            continue
        if label is None:
            spent = await _spent(connection, kind, subject_id, window)
        else:
            spent = await _spent_with(connection, label, window)
        if spent:
            row = dict(zip(columns.keys(), (*key, SHARED), strict=True))
            row |= {"amount": min(spent, MAX_AMOUNT), "ends_at_ms": window.end_ms}
            await connection.execute(insert(table).values(row))


async def _spent_with(connection: AsyncConnection, label: SubjectLabel, window: Window) -> int:
    """Return what requests with a label have cost since the start of a window."""
    query = select(*cost_columns(label_days)).where(
        label_days.c.day >= window.start_ms // DAY_MS,
        label_days.c.label == label.name,
        label_days.c.value == label.value,
    )
    if label.user_id:
        query = query.where(label_days.c.user_id == label.user_id)
    return picodollars_of((await connection.execute(query)).one())


async def _spent(
    connection: AsyncConnection, kind: SubjectKind, subject_id: str, window: Window
) -> int:
    """Return what a subject has spent since the start of a window, in 10^-12 US dollars."""
    query = select(*cost_columns()).where(
        _SUBJECTS[kind] == subject_id, days.c.day >= window.start_ms // DAY_MS
    )
    if kind == SubjectKind.KEY:
        # Days have an index by user, and none by key.
        owner = select(api_keys.c.user_id).where(api_keys.c.id == subject_id).scalar_subquery()
        query = query.where(days.c.user_id == owner)
    return picodollars_of((await connection.execute(query)).one())
