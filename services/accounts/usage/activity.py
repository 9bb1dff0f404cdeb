"""Paginated sums of the usage records of a period, with latencies: by hour and other groupings."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import ColumnElement, and_, case, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import (
    ActivitySum,
    Latencies,
    ReportActivityRequest,
    ReportActivityResponse,
    UsageSum,
)
from services.accounts.usage.grouping import (
    check_page_size,
    conditions_of,
    group_of_token,
    names_of,
    token_of,
)
from services.accounts.usage.tables import DAY_MS, TOKENS, records
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.ids import RECORD, time_prefix
from services.common.money import decimal_dollars
from services.common.storage.database import reading
from services.common.storage.page_tokens import invalid_token

_HOUR_MS = 3_600_000
_DEFAULT_MS = DAY_MS
_MAX_MS = 31 * DAY_MS
# Maximum size of a number of hours or days in page tokens.
_MAX_TIME_BITS = 40
# The time in an id is that of the record's creation, which is close to the end of the request.
_ID_SLACK_MS = 60_000
# Costs are summed in two parts, each of which fits into SQLite's 64-bit integers.
_PART = 10**9

_TIMES: Mapping[int, ColumnElement[Any]] = {
    usage_pb2.USAGE_GROUPING_HOUR: records.c.time_ms // _HOUR_MS,
    usage_pb2.USAGE_GROUPING_DAY: records.c.time_ms // DAY_MS,
}
_PARTS: Mapping[int, ColumnElement[Any]] = {
    usage_pb2.USAGE_GROUPING_USER: records.c.user_id,
    usage_pb2.USAGE_GROUPING_TEAM: records.c.team_id,
    usage_pb2.USAGE_GROUPING_KEY: records.c.key_id,
    usage_pb2.USAGE_GROUPING_MODEL: records.c.model,
    usage_pb2.USAGE_GROUPING_PROVIDER: records.c.provider,
}
_IS_SERVED = and_(records.c.requests == 1, records.c.outcome == usage_pb2.USAGE_OUTCOME_SERVED)


class _Groups(NamedTuple):
    """The two grouping columns, and their groupings."""

    by: usage_pb2.UsageGrouping.ValueType
    split_by: usage_pb2.UsageGrouping.ValueType
    group: ColumnElement[Any]
    split: ColumnElement[Any]


async def report_activity(
    engine: AsyncEngine, request: ReportActivityRequest, clock: Clock
) -> ReportActivityResponse:
    """Return a page of sums.

    Raises:
        GatewayError: invalid, naming the field; unavailable, when the database does not answer.
    """
    check_page_size(request.page_size)
    groups = _groups(request)
    conditions = [*_in_time(request, clock), *conditions_of(request.filter, records)]
    after = _after(groups, request.page_token) if request.page_token else ()
    query = (
        select(
            groups.group.label("grp"),
            groups.split.label("split"),
            *_sums(),
        )
        .where(*conditions, *after)
        .group_by("grp", "split")
        .order_by("grp", "split")
        .limit(request.page_size + 1)
    )
    async with reading(engine) as connection:
        rows = (await connection.execute(query)).all()
        page = rows[: request.page_size]
        if not page:
            return ReportActivityResponse()
        of_page = groups.group.between(page[0].grp, page[-1].grp)
        first_contents = await _latencies(
            connection, groups, records.c.first_content_ms, [*conditions, of_page]
        )
        durations = await _latencies(
            connection, groups, records.c.duration_ms, [*conditions, of_page]
        )
        names = await names_of(connection, groups.by, [row.grp for row in page])
        split_names = await names_of(connection, groups.split_by, [row.split for row in page])
    response = ReportActivityResponse()
    for row in page:
        response.sums.append(
            ActivitySum(
                usage=_usage(groups, row, names),
                split=row.split if groups.split_by else None,
                split_name=split_names.get(row.split, ""),
                cancelled_requests=row.cancelled_requests,
                first_content=first_contents.get((row.grp, row.split)),
                duration=durations.get((row.grp, row.split)),
            )
        )
    if len(rows) > len(page):
        last = [page[-1].grp, page[-1].split]
        response.next_page_token = token_of(orjson.dumps(last).decode())
    return response


def _groups(request: ReportActivityRequest) -> _Groups:
    group = _TIMES.get(request.by, _PARTS.get(request.by))
    if group is None:
        raise invalid("by", "by: must be hour, day, user, team, key, model or provider")
    split: ColumnElement[Any] = literal("")
    if request.split_by:
        if request.split_by not in _PARTS or request.split_by == request.by:
            raise invalid(
                "split_by",
                "split_by: must be user, team, key, model or provider, and differ from `by`",
            )
        split = _PARTS[request.split_by]
    return _Groups(request.by, request.split_by, group, split)


def _in_time(request: ReportActivityRequest, clock: Clock) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions for the records of the requested period."""
    until_ms = request.until_ms if request.HasField("until_ms") else clock.now_ms()
    since_ms = max(0, until_ms - _DEFAULT_MS)
    if request.HasField("since_ms"):
        since_ms = request.since_ms
    if since_ms < 0 or not 0 <= until_ms - since_ms <= _MAX_MS:
        raise invalid("since_ms", "since_ms: must be before until_ms, by at most 31 days")
    # Ids are the primary key, and are ordered by time.
    return [
        records.c.id >= time_prefix(RECORD, since_ms - _ID_SLACK_MS),
        records.c.id < time_prefix(RECORD, until_ms + _ID_SLACK_MS),
        records.c.time_ms >= since_ms,
        records.c.time_ms < until_ms,
    ]


def _after(groups: _Groups, token: str) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions for the groups after the previous page."""
    try:
        last = orjson.loads(group_of_token(token))
    except orjson.JSONDecodeError:
        raise invalid_token() from None
    kind = int if groups.by in _TIMES else str
    if not isinstance(last, list) or [type(part) for part in last] != [kind, str]:
        raise invalid_token()
    group, split = last
    if (kind is int and group.bit_length() > _MAX_TIME_BITS) or "\0" in f"{group}{split}":
        raise invalid_token()
    return [or_(groups.group > group, and_(groups.group == group, groups.split > split))]


def _sums() -> Sequence[ColumnElement[Any]]:
    def requests(outcome: int) -> ColumnElement[Any]:
        return func.sum(case((records.c.outcome == outcome, records.c.requests), else_=0))

    return [
        func.sum(records.c.requests).label("requests"),
        requests(usage_pb2.USAGE_OUTCOME_FAILED).label("failed_requests"),
        requests(usage_pb2.USAGE_OUTCOME_CANCELLED).label("cancelled_requests"),
        *(func.sum(records.c[name]).label(name) for name in TOKENS),
        func.sum(case((records.c.cost_pusd.is_(None), 1), else_=0)).label("unpriced"),
        func.sum(records.c.estimated).label("estimated"),
        func.coalesce(func.sum(records.c.cost_pusd // _PART), 0).label("whole"),
        func.coalesce(func.sum(records.c.cost_pusd % _PART), 0).label("rest"),
    ]


async def _latencies(
    connection: AsyncConnection,
    groups: _Groups,
    time: ColumnElement[Any],
    conditions: Sequence[ColumnElement[bool]],
) -> Mapping[tuple[Any, Any], Latencies]:
    """Return the distribution of a column of durations for each group."""
    within = [groups.group, groups.split]
    ranked = (
        select(
            groups.group.label("grp"),
            groups.split.label("split"),
            time.label("ms"),
            func.row_number().over(partition_by=within, order_by=time).label("place"),
            func.count().over(partition_by=within).label("number"),
        )
        .where(*conditions, _IS_SERVED, time.is_not(None))
        .subquery()
    )

    def percentile(share: int) -> ColumnElement[Any]:
        # The smallest duration that `share` percent of the durations do not exceed.
        return func.min(
            case((ranked.c.place * 100 >= ranked.c.number * share, ranked.c.ms), else_=None)
        )

    query = select(
        ranked.c.grp,
        ranked.c.split,
        func.count(),
        func.sum(ranked.c.ms),
        percentile(50),
        percentile(95),
        percentile(99),
        func.max(ranked.c.ms),
    ).group_by(ranked.c.grp, ranked.c.split)
    latencies = {}
    for group, split, count, total, p50, p95, p99, longest in await connection.execute(query):
        latencies[group, split] = Latencies(
            count=count,
            mean_ms=float(total) / count,
            p50_ms=p50,
            p95_ms=p95,
            p99_ms=p99,
            max_ms=longest,
        )
    return latencies


def _usage(groups: _Groups, row: Any, names: Mapping[Any, str]) -> UsageSum:
    group = row.grp
    if groups.by == usage_pb2.USAGE_GROUPING_HOUR:
        group = datetime.fromtimestamp(group * 3600, UTC).strftime("%Y-%m-%dT%H:00:00Z")
    elif groups.by == usage_pb2.USAGE_GROUPING_DAY:
        group = datetime.fromtimestamp(group * 86_400, UTC).date().isoformat()
    counts = ("requests", "failed_requests", *TOKENS, "unpriced", "estimated")
    return UsageSum(
        group=group,
        name=names.get(group, ""),
        cost_dollars=decimal_dollars(int(row.whole) * _PART + int(row.rest)),
        **{name: int(getattr(row, name)) for name in counts},
    )
