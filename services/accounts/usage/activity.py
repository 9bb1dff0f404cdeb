"""Paginated sums of usage in an interval, with latencies: by hour and other groupings."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    RowMapping,
    Subquery,
    and_,
    cast,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.usage_pb2 import (
    ActivitySum,
    ReportActivityRequest,
    ReportActivityResponse,
    UsageSum,
)
from services.accounts.usage.grouping import (
    OF_LABELS,
    check_page_size,
    group_of_token,
    names_of,
    token_of,
)
from services.accounts.usage.latency import ADDED, DURATION, FIRST_CONTENT, latencies_of
from services.accounts.usage.sources import (
    DAY,
    HOUR,
    PARTS,
    Interval,
    SumsSource,
    rows_of,
    sources_of,
)
from services.accounts.usage.tables import DAY_MS, MAXIMUMS, TOKENS, hours
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.money import decimal_dollars
from services.common.storage.database import reading
from services.common.storage.page_tokens import invalid_token

_DEFAULT_MS = DAY_MS
_MAX_MS = 31 * DAY_MS
# Maximum size of a number of hours or days, as of its columns.
_MAX_TIME_BITS = 31
# Rows of `usage_hours` that a page reads, and those of one hour: it may have fewer groups then.
_MAX_HOUR_ROWS = 20_000
# Costs are summed in two parts, each of which fits into SQLite's 64-bit integers.
_PART = 10**9
_COUNTS = ("requests", "failed_requests", *TOKENS, "unpriced", "estimated")


async def report_activity(
    engine: AsyncEngine, request: ReportActivityRequest, clock: Clock
) -> ReportActivityResponse:
    """Return a page of sums.

    Raises:
        GatewayError: invalid, naming the field; unavailable, when the database does not answer.
    """
    check_page_size(request.page_size)
    _check_groupings(request)
    for name in OF_LABELS:
        if getattr(request.filter, name):
            raise invalid(name, f"{name}: is for sums of usage, not of activity")
    now_ms = clock.now_ms()
    sources = sources_of(request, _interval(request, now_ms), now_ms)
    async with reading(engine) as connection:
        sources, is_cut = await _cut(connection, request, sources)
        rows = await _sums(connection, request, sources)
        page = rows[: request.page_size]
        if not page:
            return ReportActivityResponse()
        latencies = await _latencies(connection, request, sources, page)
        names = await names_of(connection, request.by, [row.grp for row in page])
        split_names = await names_of(connection, request.split_by, [row.split for row in page])
    response = ReportActivityResponse()
    for row in page:
        measured = latencies[row.grp, row.split]
        response.sums.append(
            ActivitySum(
                usage=_usage(request, row, names),
                split=row.split if request.split_by else None,
                split_name=split_names.get(row.split, ""),
                cancelled_requests=int(row.cancelled_requests),
                first_content=latencies_of(measured, FIRST_CONTENT),
                duration=latencies_of(measured, DURATION),
            )
        )
    if is_cut or len(rows) > len(page):
        last = [page[-1].grp, page[-1].split]
        response.next_page_token = token_of(orjson.dumps(last).decode())
    return response


def _check_groupings(request: ReportActivityRequest) -> None:
    if request.by not in (HOUR, DAY, *PARTS):
        raise invalid("by", "by: must be hour, day, user, team, key, model or provider")
    if request.split_by and (request.split_by not in PARTS or request.split_by == request.by):
        raise invalid(
            "split_by",
            "split_by: must be user, team, key, model or provider, and differ from `by`",
        )


def _interval(request: ReportActivityRequest, now_ms: int) -> Interval:
    """Return the hours of the requested interval."""
    until_ms = request.until_ms if request.HasField("until_ms") else now_ms
    since_ms = max(0, until_ms - _DEFAULT_MS)
    if request.HasField("since_ms"):
        since_ms = request.since_ms
    if since_ms < 0 or not 0 <= until_ms - since_ms <= _MAX_MS:
        raise invalid("since_ms", "since_ms: must be before until_ms, by at most 31 days")
    return Interval.of_hours(since_ms, until_ms)


async def _cut(
    connection: AsyncConnection, request: ReportActivityRequest, sources: Sequence[SumsSource]
) -> tuple[Sequence[SumsSource], bool]:
    """Return sources for no more hours than a page may read, and whether hours are left."""
    [first, *_] = sources
    if request.by != HOUR or first.table is not hours:
        return sources, False
    conditions = list(first.conditions)
    if request.page_token:
        conditions.append(first.time >= _last_of(request)[0])
    last = await connection.scalar(
        select(first.time).where(*conditions).order_by(first.time).offset(_MAX_HOUR_ROWS).limit(1)
    )
    if last is None:
        return sources, False
    return [SumsSource(first.table, [*conditions, first.time <= last])], True


async def _sums(
    connection: AsyncConnection, request: ReportActivityRequest, sources: Sequence[SumsSource]
) -> Sequence[Any]:
    """Return the sums of the groups of a page, and of the next group if there is one."""
    names = (*_COUNTS, "cancelled_requests")
    rows = rows_of(request, sources, (*names, "cost_pusd"))
    groups = _groups_of(request, rows)
    query = (
        select(
            rows.c.grp,
            _split_of(request, rows),
            *(_sum(rows.c[name]).label(name) for name in names),
            _sum(rows.c.cost_pusd // _PART).label("whole"),
            _sum(rows.c.cost_pusd % _PART).label("rest"),
        )
        .where(*_after(request, rows.c.grp, rows.c.split))
        .group_by(*groups)
        .order_by(*groups)
        .limit(request.page_size + 1)
    )
    return (await connection.execute(query)).all()


async def _latencies(
    connection: AsyncConnection,
    request: ReportActivityRequest,
    sources: Sequence[SumsSource],
    page: Sequence[Any],
) -> Mapping[tuple[Any, Any], RowMapping]:
    """Return the sums of the columns of latencies for the groups of a page."""
    rows = rows_of(request, sources, (*ADDED, *MAXIMUMS))
    query = (
        select(
            rows.c.grp,
            _split_of(request, rows),
            *(_sum(rows.c[name]).label(name) for name in ADDED),
            *(func.max(rows.c[name]).label(name) for name in MAXIMUMS),
        )
        .where(rows.c.grp.between(page[0].grp, page[-1].grp))
        .group_by(*_groups_of(request, rows))
    )
    return {(row["grp"], row["split"]): row for row in (await connection.execute(query)).mappings()}


def _groups_of(request: ReportActivityRequest, rows: Subquery) -> Sequence[ColumnElement[Any]]:
    """Return the columns to group by: SQLite sorts all rows to group by a constant too."""
    return (rows.c.grp, rows.c.split) if request.split_by else (rows.c.grp,)


def _split_of(request: ReportActivityRequest, rows: Subquery) -> ColumnElement[Any]:
    return rows.c.split if request.split_by else literal("").label("split")


def _sum(column: ColumnElement[Any]) -> ColumnElement[int]:
    """Return the sum of a column of counts, which the driver of PostgreSQL reads as an integer."""
    return cast(func.sum(column), BigInteger)


def _after(
    request: ReportActivityRequest, group: ColumnElement[Any], split: ColumnElement[Any]
) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions for the groups after the previous page."""
    if not request.page_token:
        return []
    last_group, last_split = _last_of(request)
    return [
        group >= last_group,
        or_(group > last_group, and_(group == last_group, split > last_split)),
    ]


def _last_of(request: ReportActivityRequest) -> tuple[Any, str]:
    """Parse a page token; return the last groups of the previous page.

    Raises:
        GatewayError: invalid, when the token is not valid.
    """
    try:
        last = orjson.loads(group_of_token(request.page_token))
    except orjson.JSONDecodeError:
        raise invalid_token() from None
    kind = int if request.by in (HOUR, DAY) else str
    if not isinstance(last, list) or [type(part) for part in last] != [kind, str]:
        raise invalid_token()
    group, split = last
    if (kind is int and group.bit_length() > _MAX_TIME_BITS) or "\0" in f"{group}{split}":
        raise invalid_token()
    return group, split


def _usage(request: ReportActivityRequest, row: Any, names: Mapping[Any, str]) -> UsageSum:
    group = row.grp
    if request.by == HOUR:
        group = datetime.fromtimestamp(group * 3600, UTC).strftime("%Y-%m-%dT%H:00:00Z")
    elif request.by == DAY:
        group = datetime.fromtimestamp(group * 86_400, UTC).date().isoformat()
    return UsageSum(
        group=group,
        name=names.get(group, ""),
        cost_dollars=decimal_dollars(int(row.whole) * _PART + int(row.rest)),
        **{name: int(getattr(row, name)) for name in _COUNTS},
    )
