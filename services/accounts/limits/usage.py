"""What is used and reserved of limits, read from the leases of all workers."""

from collections.abc import Sequence

from sqlalchemy import bindparam, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import LimitUsage, Measure, SubjectLimits
from services.accounts.limits.forecast import forecast
from services.accounts.limits.leases import (
    ADDED,
    HELD,
    RESERVED,
    RESET,
    AllowanceKey,
    allowance_key,
)
from services.accounts.limits.rules import MAX_AMOUNT, SubjectKind
from services.accounts.limits.soft_limits import soft_amount
from services.accounts.limits.tables import allowances as table
from services.common.limit_windows import ALWAYS, MEASURES, SPEND, Period, Window, window_of
from services.common.storage.key_lists import KeyList

_KEY = (table.c.subject_kind, table.c.subject_id, table.c.measure, table.c.window_start_ms)
_ALLOWANCES = KeyList(_KEY, 2, "allowances")
_RESET_AT = func.max(case((table.c.holder == RESET, table.c.reserved_until_ms)))
_QUERY = (
    select(*_KEY, func.sum(HELD), func.sum(RESERVED), func.sum(ADDED), _RESET_AT)
    .where(
        _ALLOWANCES.condition,
        table.c.ends_at_ms > bindparam("now_ms"),
    )
    .group_by(*_KEY)
)


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
            state = _unused(subject_limits, measure, limit, window)
            key = allowance_key(kind, subject_limits.id, field.name, window.start_ms, period.days)
            states[key] = state
    if not states:
        return []
    values = {**_ALLOWANCES.values(states), "now_ms": now_ms}
    for *parts, held, reserved, added, reset_at_ms in await connection.execute(_QUERY, values):
        kind_name, subject_id, name, start_ms = parts
        state = states[kind_name, subject_id, name, start_ms]
        if state.measure == limits_pb2.MEASURE_CONCURRENT_REQUESTS:
            reserved = held
        state.used, state.reserved = max(0, int(held) - int(reserved)), int(reserved)
        state.added = int(added)
        state.limit = min(MAX_AMOUNT, state.limit + state.added)
        if reset_at_ms is not None:
            state.reset_at_ms = reset_at_ms
    for state in states.values():
        state.remaining = max(0, state.limit - state.used - state.reserved)
        if state.measure in SPEND:
            _add_forecast(state, now_ms)
    return list(states.values())


def _unused(
    limits: SubjectLimits, measure: Measure.ValueType, limit: int, window: Window
) -> LimitUsage:
    """Return the state of a limit of which nothing is used."""
    state = LimitUsage(kind=limits.kind, id=limits.id, measure=measure, limit=limit)
    if window != ALWAYS:
        state.starts_at_ms = window.start_ms
    if window.has_end:
        state.resets_at_ms = window.end_ms
    if measure in SPEND and limits.HasField("soft_limit_percent"):
        state.soft_limit_percent = limits.soft_limit_percent
    return state


def _add_forecast(state: LimitUsage, now_ms: int) -> None:
    """Set the fields of a budget that follow from the others."""
    if state.HasField("soft_limit_percent"):
        amount = soft_amount(state.limit, state.soft_limit_percent)
        state.soft_limit_reached = state.used >= amount
    end_ms = state.resets_at_ms if state.HasField("resets_at_ms") else ALWAYS.end_ms
    since_ms = state.reset_at_ms if state.HasField("reset_at_ms") else state.starts_at_ms
    window = Window(state.starts_at_ms, end_ms)
    expected = forecast(state.limit, state.used, window, since_ms, now_ms)
    if expected.at_end is not None:
        state.forecast = min(MAX_AMOUNT, max(0, expected.at_end))
    if expected.exhausted_at_ms is not None:
        state.exhausted_at_ms = expected.exhausted_at_ms
