import pytest

from services.accounts.limits.forecast import Forecast, forecast
from services.common.limit_windows import ALWAYS, DAY_MS, Window

HOUR_MS = 3_600_000
WINDOW = Window(10 * DAY_MS, 20 * DAY_MS)
START = WINDOW.start_ms


@pytest.mark.parametrize(
    ("used", "window", "since_ms", "now_ms", "expected"),
    [
        (10, WINDOW, START, START + HOUR_MS - 1, Forecast()),
        (10, WINDOW, START, START + DAY_MS, Forecast(100)),
        (20, WINDOW, START, START + DAY_MS, Forecast(200, START + 5 * DAY_MS)),
        # Counted from a reset on.
        (20, WINDOW, START + 8 * DAY_MS, START + 9 * DAY_MS, Forecast(40)),
        (0, WINDOW, START, START + DAY_MS, Forecast(0)),
        (100, WINDOW, START, START + DAY_MS, Forecast(1_000)),
        (10, Window(0, ALWAYS.end_ms), 0, DAY_MS, Forecast(None, 10 * DAY_MS)),
        (1, Window(0, ALWAYS.end_ms), 0, 100 * DAY_MS, Forecast()),
    ],
)
def test_a_forecast_follows_the_pace_so_far(
    used: int, window: Window, since_ms: int, now_ms: int, expected: Forecast
) -> None:
    assert forecast(100, used, window, since_ms, now_ms) == expected
