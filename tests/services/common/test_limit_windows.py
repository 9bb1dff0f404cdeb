from datetime import UTC, datetime

import pytest

from gateway.accounts.v1 import limits_pb2
from services.common.limit_windows import ALWAYS, Window, window_of


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


def test_requests_under_way_have_no_window() -> None:
    assert window_of(limits_pb2.MEASURE_CONCURRENT_REQUESTS, 1) == ALWAYS
