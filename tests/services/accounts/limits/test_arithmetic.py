from hypothesis import given
from hypothesis import strategies as st

from services.accounts.limits.arithmetic import grant

AMOUNTS = st.integers(0, 10**19)


@given(
    free=st.integers(-(10**19), 10**19), amount=AMOUNTS, min_amount=AMOUNTS, prefetch_amount=AMOUNTS
)
def test_no_more_is_granted_than_is_free(
    free: int, amount: int, min_amount: int, prefetch_amount: int
) -> None:
    granted, remaining = grant(free, amount, min_amount, prefetch_amount)
    assert granted + remaining == free
    assert granted >= 0
    assert remaining >= min(0, free)
    assert granted <= amount + prefetch_amount


def test_what_is_needed_is_granted_whole_or_in_part() -> None:
    assert grant(100, 30, 1, 0) == (30, 70)
    assert grant(20, 30, 1, 0) == (20, 0)
    assert grant(0, 30, 1, 0) == (0, 0)
    assert grant(-5, 30, 1, 0) == (0, -5)


def test_less_than_is_of_use_is_not_granted() -> None:
    assert grant(20, 30, 25, 0) == (0, 20)
    assert grant(25, 30, 25, 0) == (25, 0)
    # A minimum above what is needed asks for all of that.
    assert grant(30, 30, 99, 0) == (30, 0)


def test_a_small_part_of_what_is_left_is_granted_ahead() -> None:
    assert grant(1_610, 10, 1, 1_000) == (110, 1_500)
    assert grant(1_610, 10, 1, 7) == (17, 1_593)
    assert grant(25, 10, 1, 1_000) == (10, 15)


def test_one_reservation_may_exceed_what_is_left() -> None:
    assert grant(100, 30, 30, 0, overdraws=True) == (30, 70)
    assert grant(5, 30, 30, 0, overdraws=True) == (30, -25)
    # As much as fits comes first, and the reservation that exceeds it in the next claim.
    assert grant(15, 30, 10, 0, overdraws=True) == (15, 0)
    for free in (0, -25):
        assert grant(free, 30, 30, 0, overdraws=True) == (0, free)
