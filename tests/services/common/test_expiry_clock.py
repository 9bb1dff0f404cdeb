"""Expiry after the wall clock was set."""

from typing import Any

import pytest

from services.common.clock import Clock, ExpiryClock
from services.common.storage.leased_rows import LeasedRows
from services.common.storage.leases import table

HOUR_S = 3600.0
LEASE_S = 3.0


class SetClock:
    """Two clocks that stand still until a test moves them."""

    def __init__(self) -> None:
        self.wall_s, self.steady_s = 1_700_000_000.0, 50.0
        self.clock = Clock(now=lambda: self.wall_s, monotonic=lambda: self.steady_s)

    def pass_time(self, seconds: float) -> None:
        self.wall_s += seconds
        self.steady_s += seconds


@pytest.fixture
def time() -> SetClock:
    return SetClock()


def rows_of(time: SetClock) -> LeasedRows:
    clock: Any = time.clock
    return LeasedRows(table, clock, LEASE_S)


def test_time_that_passes_is_no_jump(time: SetClock) -> None:
    expiry = ExpiryClock(time.clock, LEASE_S)
    for _ in range(5):
        time.pass_time(HOUR_S)
        assert expiry.bounds_ms() == (int(time.wall_s * 1000),) * 2


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_after_a_jump_it_may_be_either_time_for_a_while(time: SetClock, jump_s: float) -> None:
    expiry = ExpiryClock(time.clock, LEASE_S)
    before_ms = int(time.wall_s * 1000)
    time.wall_s += jump_s
    after_ms = int(time.wall_s * 1000)
    assert expiry.bounds_ms() == (min(before_ms, after_ms), max(before_ms, after_ms))
    time.pass_time(LEASE_S)
    assert expiry.bounds_ms() == (int(time.wall_s * 1000),) * 2


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_a_lease_that_is_renewed_is_never_free(time: SetClock, jump_s: float) -> None:
    rows = rows_of(time)
    ends_at_ms = rows.ends_at_ms()
    time.wall_s += jump_s
    assert not rows.is_expired(ends_at_ms)
    time.pass_time(LEASE_S / 2)
    assert not rows.is_expired(ends_at_ms)
    ends_at_ms = rows.ends_at_ms()  # its holder renews it
    time.pass_time(LEASE_S - 0.001)
    assert not rows.is_expired(ends_at_ms)
    time.pass_time(0.001)
    assert rows.is_expired(ends_at_ms)


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_a_lease_of_the_dead_is_free_after_one_length(time: SetClock, jump_s: float) -> None:
    rows = rows_of(time)
    ends_at_ms = rows.ends_at_ms()
    time.wall_s += jump_s
    assert not rows.is_expired(ends_at_ms)
    time.pass_time(LEASE_S)
    assert rows.is_expired(ends_at_ms)


def test_two_jumps_in_a_row_free_nothing(time: SetClock) -> None:
    rows = rows_of(time)
    ends_at_ms = rows.ends_at_ms()
    for jump_s in (HOUR_S, -2 * HOUR_S):
        time.wall_s += jump_s
        assert not rows.is_expired(ends_at_ms)
