"""The sums that a report of activity reads: by hour, by day, or of all users together. Pure.

A report that names no user, team or key, as a grouping or a filter, reads `usage_model_hours`.
Other reports read `usage_hours` if they are by hour, else `usage_days`, and `usage_hours` for the
parts of days at the ends of the interval.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, Subquery, Table, literal, select, union_all

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import ReportActivityRequest
from services.accounts.usage.grouping import conditions_of
from services.accounts.usage.sums import KEYS
from services.accounts.usage.tables import HOUR_MS, days, hours, model_hours

_DAY_HOURS = 24
# Maximum of the columns of hours and days.
_MAX = 2**31 - 1
HOUR = usage_pb2.USAGE_GROUPING_HOUR
DAY = usage_pb2.USAGE_GROUPING_DAY
# The columns of groupings that are not by time.
PARTS: Mapping[int, str] = {
    usage_pb2.USAGE_GROUPING_USER: "user_id",
    usage_pb2.USAGE_GROUPING_TEAM: "team_id",
    usage_pb2.USAGE_GROUPING_KEY: "key_id",
    usage_pb2.USAGE_GROUPING_MODEL: "model",
    usage_pb2.USAGE_GROUPING_PROVIDER: "provider",
}
_CALLERS = set(KEYS[hours.name]) - set(KEYS[model_hours.name])


class Interval(NamedTuple):
    """An interval of hours, or of days, since 1970.

    Attributes:
        first: the first one.
        end: the one after the last.
    """

    first: int
    end: int

    @classmethod
    def of_hours(cls, since_ms: int, until_ms: int) -> "Interval":
        """Return the hours that an interval in milliseconds touches."""
        return cls(min(_MAX, since_ms // HOUR_MS), min(_MAX, -(-until_ms // HOUR_MS)))

    def days(self, now_ms: int) -> "Interval":
        """Return the days of an interval of hours that it has whole, or until now."""
        first = -(-self.first // _DAY_HOURS)
        end = self.end // _DAY_HOURS
        if self.end * HOUR_MS >= now_ms:
            # There is no usage yet in the other hours of the last day.
            end = -(-self.end // _DAY_HOURS)
        return Interval(first, max(first, end))


class SumsSource(NamedTuple):
    """Rows of one table of sums that a report reads.

    Attributes:
        table: the table.
        conditions: SQL conditions that select the rows.
    """

    table: Table
    conditions: Sequence[ColumnElement[bool]]

    @property
    def time(self) -> Column[int]:
        """The column with the hour or the day."""
        return self.table.c[KEYS[self.table.name][0]]


def sources_of(
    request: ReportActivityRequest, interval: Interval, now_ms: int
) -> Sequence[SumsSource]:
    """Return the sums that a valid request needs, of an interval of hours."""
    if not _names_callers(request):
        return [_source(request, model_hours, interval)]
    if request.by == HOUR:
        return [_source(request, hours, interval)]
    whole_days = interval.days(now_ms)
    if whole_days.first == whole_days.end:
        return [_source(request, hours, interval)]
    ends = (
        Interval(interval.first, whole_days.first * _DAY_HOURS),
        Interval(whole_days.end * _DAY_HOURS, interval.end),
    )
    return [
        _source(request, days, whole_days),
        *(_source(request, hours, end) for end in ends if end.first < end.end),
    ]


def rows_of(
    request: ReportActivityRequest, sources: Sequence[SumsSource], names: Sequence[str]
) -> Subquery:
    """Return the rows of sources with columns `grp` and `split`, the groups, and those `names`."""
    selects = [
        select(
            _group_of(source, request.by).label("grp"),
            _group_of(source, request.split_by).label("split"),
            *(source.table.c[name] for name in names),
        ).where(*source.conditions)
        for source in sources
    ]
    return (union_all(*selects) if len(selects) > 1 else selects[0]).subquery()


def _names_callers(request: ReportActivityRequest) -> bool:
    return not _CALLERS.isdisjoint(_names_in(request))


def _names_in(request: ReportActivityRequest) -> Iterator[str]:
    """Yield the columns by which a request groups and filters."""
    for grouping in (request.by, request.split_by):
        if grouping in PARTS:
            yield PARTS[grouping]
    for field, _ in request.filter.ListFields():
        yield field.name


def _source(request: ReportActivityRequest, table: Table, interval: Interval) -> SumsSource:
    conditions = conditions_of(request.filter, table)
    time = table.c[KEYS[table.name][0]]
    return SumsSource(table, [time >= interval.first, time < interval.end, *conditions])


def _group_of(source: SumsSource, by: usage_pb2.UsageGrouping.ValueType) -> ColumnElement[Any]:
    if by in PARTS:
        return source.table.c[PARTS[by]]
    if not by:
        return literal("")
    if by == DAY and source.table is not days:
        return source.time // _DAY_HOURS
    return source.time
