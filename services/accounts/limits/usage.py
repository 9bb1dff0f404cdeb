"""What is used and reserved of limits, read from the leases of all workers."""

from collections.abc import Sequence

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import LimitUsage, SubjectLimits
from services.accounts.limits.leases import AllowanceKey, allowance_key
from services.accounts.limits.rules import SubjectKind
from services.accounts.limits.tables import allowances as table
from services.common.limit_windows import MEASURES, Period, window_of
from services.common.storage.key_lists import KeyList

_KEY = (table.c.subject_kind, table.c.subject_id, table.c.measure, table.c.window_start_ms)
_ALLOWANCES = KeyList(_KEY, 2, "allowances")


async def usage_of_limits(
    connection: AsyncConnection, limits: Sequence[SubjectLimits], now_ms: int
) -> list[LimitUsage]:
    """Return the state of each limit on a number, in the order of subjects and measures."""
    states: dict[AllowanceKey, LimitUsage] = {}
    for subject_limits in limits:
        kind = SubjectKind.of_proto(subject_limits.kind)
        period = Period(subject_limits.period_start_day, subject_limits.period_days)
        for field, limit in subject_limits.ListFields():
            if (measure := MEASURES.get(field.name)) is None:
                continue
            window = window_of(measure, now_ms, period)
            state = LimitUsage(
                kind=subject_limits.kind, id=subject_limits.id, measure=measure, limit=limit
            )
            if window.has_end:
                state.resets_at_ms = window.end_ms
            key = allowance_key(kind, subject_limits.id, field.name, window.start_ms, period.days)
            states[key] = state
    if not states:
        return []
    reserved = case((table.c.reserved_until_ms > now_ms, table.c.reserved), else_=0)
    query = (
        select(*_KEY, func.sum(table.c.amount), func.sum(reserved))
        .where(_ALLOWANCES.condition, table.c.ends_at_ms > now_ms)
        .group_by(*_KEY)
    )
    rows = await connection.execute(query, _ALLOWANCES.values(states))
    for kind, subject_id, name, start, held_amount, unspent in rows:
        state = states[kind, subject_id, name, start]
        if state.measure == limits_pb2.MEASURE_CONCURRENT_REQUESTS:
            unspent = held_amount
        state.used, state.reserved = int(held_amount) - int(unspent), int(unspent)
    for state in states.values():
        state.remaining = max(0, state.limit - state.used - state.reserved)
    return list(states.values())
