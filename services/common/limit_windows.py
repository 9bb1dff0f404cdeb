"""The measures of limits, and their windows in UTC: minutes, days, weeks, months, periods."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Measure

# The measures by their fields of `SubjectLimits`, which are the names in the tables too.
MEASURES: Final[Mapping[str, Measure.ValueType]] = {
    "requests_per_minute": limits_pb2.MEASURE_REQUESTS_PER_MINUTE,
    "tokens_per_minute": limits_pb2.MEASURE_TOKENS_PER_MINUTE,
    "concurrent_requests": limits_pb2.MEASURE_CONCURRENT_REQUESTS,
    "spend_per_day_pusd": limits_pb2.MEASURE_SPEND_PER_DAY,
    "spend_per_week_pusd": limits_pb2.MEASURE_SPEND_PER_WEEK,
    "spend_per_month_pusd": limits_pb2.MEASURE_SPEND_PER_MONTH,
    "spend_per_period_pusd": limits_pb2.MEASURE_SPEND_PER_PERIOD,
}
# The measures of money.
SPEND: Final = frozenset(
    {
        limits_pb2.MEASURE_SPEND_PER_DAY,
        limits_pb2.MEASURE_SPEND_PER_WEEK,
        limits_pb2.MEASURE_SPEND_PER_MONTH,
        limits_pb2.MEASURE_SPEND_PER_PERIOD,
    }
)
_MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000
_LENGTHS_MS: Mapping[Measure.ValueType, int] = {
    limits_pb2.MEASURE_REQUESTS_PER_MINUTE: _MINUTE_MS,
    limits_pb2.MEASURE_TOKENS_PER_MINUTE: _MINUTE_MS,
    limits_pb2.MEASURE_SPEND_PER_DAY: DAY_MS,
}
# 1970-01-01 was a Thursday; weeks begin on Monday (ISO 8601).
_FIRST_MONDAY: Final = 4


class Window(NamedTuple):
    """A window of time, in Unix milliseconds.

    Attributes:
        start_ms: start of the window, inclusive.
        end_ms: end of the window, exclusive; that of `ALWAYS` for a window without an end.
    """

    start_ms: int
    end_ms: int

    @property
    def has_end(self) -> bool:
        """Whether the window ends."""
        return self.end_ms < ALWAYS.end_ms


# The window of concurrent requests, which are not counted over time.
ALWAYS = Window(0, 1 << 62)


class Period(NamedTuple):
    """The periods of `MEASURE_SPEND_PER_PERIOD`.

    Attributes:
        start_day: a day on which a period begins, in days since 1970-01-01.
        days: length of each period; 0 for a single one without an end.
    """

    start_day: int
    days: int

    def normalized(self) -> "Period":
        """Return the same periods with the earliest `start_day`, so that equal ones are equal."""
        return Period(self.start_day % self.days, self.days) if self.days else self

    def window(self, now_ms: int) -> Window:
        """Return the period that contains a time; without an end, the only one."""
        start_ms, length_ms = self.start_day * DAY_MS, self.days * DAY_MS
        if not length_ms:
            return Window(start_ms, ALWAYS.end_ms)
        start = now_ms - (now_ms - start_ms) % length_ms
        return Window(start, start + length_ms)


_WEEK: Final = Period(_FIRST_MONDAY, 7)
# The period of measures whose windows do not depend on one.
NO_PERIOD: Final = Period(0, 0)


def window_of(measure: Measure.ValueType, now_ms: int, period: Period = NO_PERIOD) -> Window:
    """Return the window of a measure that contains a time.

    Args:
        measure: the measure.
        now_ms: the time in Unix milliseconds.
        period: the periods of `MEASURE_SPEND_PER_PERIOD`.
    """
    length = _LENGTHS_MS.get(measure)
    if length is not None:
        start = now_ms - now_ms % length
        return Window(start, start + length)
    if measure == limits_pb2.MEASURE_CONCURRENT_REQUESTS:
        return ALWAYS
    if measure == limits_pb2.MEASURE_SPEND_PER_WEEK:
        return _WEEK.window(now_ms)
    if measure == limits_pb2.MEASURE_SPEND_PER_PERIOD:
        return period.window(now_ms)
    now = datetime.fromtimestamp(now_ms // 1000, UTC)
    first = datetime(now.year, now.month, 1, tzinfo=UTC)
    after = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    return Window(int(first.timestamp()) * 1000, int(after.timestamp()) * 1000)
