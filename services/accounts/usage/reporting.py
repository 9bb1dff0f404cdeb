"""Paginated sums of usage by day, user, team, key, model, provider, tag or end user."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Table, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import ReportUsageRequest, ReportUsageResponse, UsageSum
from services.accounts.usage.grouping import (
    check_page_size,
    conditions_of,
    group_of_token,
    names_of,
    token_of,
)
from services.accounts.usage.label_filter import label_of
from services.accounts.usage.tables import TOKENS, days, label_days
from services.common.errors import invalid
from services.common.money import decimal_dollars
from services.common.storage.database import reading
from services.common.storage.page_tokens import invalid_token

_EPOCH = date(1970, 1, 1)
_DAY_NUMBER = re.compile(r"-?[0-9]{1,9}", re.ASCII)
# The columns of groupings.
_GROUPS: Mapping[int, str] = {
    usage_pb2.USAGE_GROUPING_DAY: "day",
    usage_pb2.USAGE_GROUPING_USER: "user_id",
    usage_pb2.USAGE_GROUPING_TEAM: "team_id",
    usage_pb2.USAGE_GROUPING_KEY: "key_id",
    usage_pb2.USAGE_GROUPING_MODEL: "model",
    usage_pb2.USAGE_GROUPING_PROVIDER: "provider",
    usage_pb2.USAGE_GROUPING_TAG: "value",
    usage_pb2.USAGE_GROUPING_END_USER: "value",
}
COUNTS = ("requests", "failed_requests", *TOKENS, "unpriced", "estimated")
# Costs are summed in two parts, each of which fits into SQLite's 64-bit integers.
_PART = 10**9


async def report(engine: AsyncEngine, request: ReportUsageRequest) -> ReportUsageResponse:
    """Return a page of sums.

    Raises:
        GatewayError: invalid, naming the field; unavailable, when the database does not answer.
    """
    label = label_of(request)
    table = days if label is None else label_days
    group = table.c.get(_GROUPS.get(request.by, ""))
    if group is None:
        raise invalid("by", "by: must be day, user, team, key, model, provider, tag or end_user")
    check_page_size(request.page_size)
    query = (
        select(
            group.label("grp"),
            *(func.sum(table.c[name]).label(name) for name in COUNTS),
            *cost_columns(table),
        )
        .where(*_conditions(request, table, group), *() if label is None else label.conditions())
        .group_by(group)
        .order_by(group)
        .limit(request.page_size + 1)
    )
    async with reading(engine) as connection:
        rows = (await connection.execute(query)).all()
        page = rows[: request.page_size]
        names = await names_of(connection, request.by, [row.grp for row in page])
    response = ReportUsageResponse(sums=[_sum(row, names) for row in page])
    if len(rows) > len(page):
        response.next_page_token = token_of(str(page[-1].grp))
    return response


def cost_columns(table: Table = days) -> Sequence[ColumnElement[Any]]:
    """Return the columns of a sum of costs, for `cost_of`."""
    return [
        func.coalesce(func.sum(table.c.cost_pusd // _PART), 0).label("whole"),
        func.coalesce(func.sum(table.c.cost_pusd % _PART), 0).label("rest"),
    ]


def cost_of(row: Any) -> str:
    """Return the cost of a row with `cost_columns`, in decimal dollars."""
    return decimal_dollars(picodollars_of(row))


def picodollars_of(row: Any) -> int:
    """Return the cost of a row with `cost_columns`, in picodollars."""
    return int(row.whole) * _PART + int(row.rest)


def _conditions(
    request: ReportUsageRequest, table: Table, group: Column[Any]
) -> Sequence[ColumnElement[bool]]:
    conditions = [*conditions_of(request.filter, table)]
    if request.from_day:
        conditions.append(table.c.day >= _day("from_day", request.from_day))
    if request.to_day:
        conditions.append(table.c.day <= _day("to_day", request.to_day))
    if request.page_token:
        after = group_of_token(request.page_token)
        is_day = group is table.c.day
        if is_day and not _DAY_NUMBER.fullmatch(after):
            raise invalid_token()
        conditions.append(group > (int(after) if is_day else after))
    return conditions


def _sum(row: Any, names: Mapping[Any, str]) -> UsageSum:
    group = row.grp
    if isinstance(group, int):
        group = datetime.fromtimestamp(group * 86_400, UTC).date().isoformat()
    return UsageSum(
        group=group,
        name=names.get(group, ""),
        cost_dollars=cost_of(row),
        **{name: int(getattr(row, name)) for name in COUNTS},
    )


def _day(field: str, text: str) -> int:
    try:
        return (date.fromisoformat(text) - _EPOCH).days
    except ValueError:
        raise invalid(field, f"{field}: must be a date such as 2026-11-23") from None
