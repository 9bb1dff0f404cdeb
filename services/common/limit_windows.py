"""The windows of limits: minutes, days and months in UTC."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Measure

_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 86_400_000
_LENGTHS_MS: Mapping[Measure.ValueType, int] = {
    limits_pb2.MEASURE_REQUESTS_PER_MINUTE: _MINUTE_MS,
    limits_pb2.MEASURE_TOKENS_PER_MINUTE: _MINUTE_MS,
    limits_pb2.MEASURE_SPEND_PER_DAY: _DAY_MS,
}


class Window(NamedTuple):
    """A window of time, in Unix milliseconds.

    Attributes:
        start_ms: start of the window, inclusive.
        end_ms: end of the window, exclusive.
    """

    start_ms: int
    end_ms: int


# The window of concurrent requests, which are not counted over time.
ALWAYS = Window(0, 1 << 62)


def window_of(measure: Measure.ValueType, now_ms: int) -> Window:
    """Return the window of a measure that contains a time."""
    length = _LENGTHS_MS.get(measure)
    if length is not None:
        start = now_ms - now_ms % length
        return Window(start, start + length)
    if measure == limits_pb2.MEASURE_CONCURRENT_REQUESTS:
        return ALWAYS
    now = datetime.fromtimestamp(now_ms // 1000, UTC)
    first = datetime(now.year, now.month, 1, tzinfo=UTC)
    after = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    return Window(int(first.timestamp()) * 1000, int(after.timestamp()) * 1000)
