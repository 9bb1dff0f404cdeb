"""What is used and reserved of limits, read from the leases of all workers."""

from collections.abc import Mapping, Sequence

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import LimitUsage, Measure, SubjectLimits
from services.accounts.limits.rules import SubjectKind
from services.accounts.limits.tables import allowances as table
from services.common.limit_windows import window_of
from services.common.storage.key_lists import KeyList

# The measures by their fields of `SubjectLimits`, which are the names in the table too.
MEASURES: Mapping[str, Measure.ValueType] = {
    "requests_per_minute": limits_pb2.MEASURE_REQUESTS_PER_MINUTE,
    "tokens_per_minute": limits_pb2.MEASURE_TOKENS_PER_MINUTE,
    "concurrent_requests": limits_pb2.MEASURE_CONCURRENT_REQUESTS,
    "spend_per_day_pusd": limits_pb2.MEASURE_SPEND_PER_DAY,
    "spend_per_month_pusd": limits_pb2.MEASURE_SPEND_PER_MONTH,
}
_KEY = (table.c.subject_kind, table.c.subject_id, table.c.measure, table.c.window_start_ms)
_ALLOWANCES = KeyList(_KEY, 2, "allowances")


async def usage_of_limits(
    connection: AsyncConnection, limits: Sequence[SubjectLimits], now_ms: int
) -> list[LimitUsage]:
    """Return the state of each limit on a number, in the order of subjects and measures."""
    states: dict[tuple[str, str, str, int], LimitUsage] = {}
    for subject_limits in limits:
        kind = SubjectKind.of_proto(subject_limits.kind).value
        for field, limit in subject_limits.ListFields():
            if (measure := MEASURES.get(field.name)) is None:
                continue
            window = window_of(measure, now_ms)
            state = LimitUsage(
                kind=subject_limits.kind, id=subject_limits.id, measure=measure, limit=limit
            )
            if measure != limits_pb2.MEASURE_CONCURRENT_REQUESTS:
                state.resets_at_ms = window.end_ms
            states[kind, subject_limits.id, field.name, window.start_ms] = state
    if not states:
        return []
    reserved = case((table.c.reserved_until_ms > now_ms, table.c.reserved), else_=0)
    query = (
        select(*_KEY, func.sum(table.c.amount), func.sum(reserved))
        .where(_ALLOWANCES.condition, table.c.ends_at_ms > now_ms)
        .group_by(*_KEY)
    )
    rows = await connection.execute(query, _ALLOWANCES.values(states))
    for *key, held_amount, unspent in rows:
        state = states[tuple(key)]
        if state.measure == limits_pb2.MEASURE_CONCURRENT_REQUESTS:
            unspent = held_amount
        state.used, state.reserved = int(held_amount) - int(unspent), int(unspent)
    for state in states.values():
        state.remaining = max(0, state.limit - state.used - state.reserved)
    return list(states.values())
