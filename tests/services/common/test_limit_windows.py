from datetime import UTC, datetime

import pytest

from gateway.accounts.v1 import limits_pb2
from services.common.limit_windows import ALWAYS, Period, Window, window_of


def _ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp()) * 1000


@pytest.mark.parametrize(
    ("now_ms", "start_ms", "end_ms"),
    [
        (_ms(2028, 2, 29, 23, 59) + 59_999, _ms(2028, 2, 1), _ms(2028, 3, 1)),
        (_ms(2028, 3, 1), _ms(2028, 3, 1), _ms(2028, 4, 1)),
        (_ms(2027, 12, 31), _ms(2027, 12, 1), _ms(2028, 1, 1)),
    ],
)
def test_a_month_is_one_of_the_calendar(now_ms: int, start_ms: int, end_ms: int) -> None:
    window = window_of(limits_pb2.MEASURE_SPEND_PER_MONTH, now_ms)
    assert window == Window(start_ms, end_ms)


def test_days_and_minutes_are_those_of_utc() -> None:
    now_ms = _ms(2028, 2, 29, 13, 7, 5) + 3
    day = window_of(limits_pb2.MEASURE_SPEND_PER_DAY, now_ms)
    assert day == Window(_ms(2028, 2, 29), _ms(2028, 3, 1))
    minute = Window(_ms(2028, 2, 29, 13, 7), _ms(2028, 2, 29, 13, 8))
    assert window_of(limits_pb2.MEASURE_REQUESTS_PER_MINUTE, now_ms) == minute
    assert window_of(limits_pb2.MEASURE_TOKENS_PER_MINUTE, now_ms) == minute
    assert window_of(limits_pb2.MEASURE_REQUESTS_PER_MINUTE, minute.end_ms) != minute


@pytest.mark.parametrize(
    ("now", "start"),
    [((2027, 12, 31, 23), (2027, 12, 27)), ((2028, 1, 3), (2028, 1, 3)), ((1969, 12, 28), None)],
)
def test_a_week_begins_on_monday(now: tuple[int, ...], start: tuple[int, ...] | None) -> None:
    start_ms = _ms(*(start or (1969, 12, 22)))
    window = window_of(limits_pb2.MEASURE_SPEND_PER_WEEK, _ms(*now))
    assert window == Window(start_ms, start_ms + 7 * 86_400_000)


def test_equal_periods_have_one_form_and_one_window() -> None:
    now_ms = _ms(2028, 3, 1, 5)
    last, first = [Period(_ms(2028, *day) // 86_400_000, 10) for day in ((2, 28), (1, 9))]
    assert last.normalized() == first.normalized()
    expected = Window(_ms(2028, 2, 28), _ms(2028, 3, 9))
    for period in (last, first, last.normalized()):
        assert window_of(limits_pb2.MEASURE_SPEND_PER_PERIOD, now_ms, period) == expected
    endless = window_of(limits_pb2.MEASURE_SPEND_PER_PERIOD, now_ms, Period(21_000, 0))
    assert endless.start_ms == 21_000 * 86_400_000 and not endless.has_end


def test_requests_under_way_have_no_window() -> None:
    assert window_of(limits_pb2.MEASURE_CONCURRENT_REQUESTS, 1) == ALWAYS
