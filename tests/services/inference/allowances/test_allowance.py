import pytest

from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import Measure
from services.inference.allowances.allowance import Allowance, Claim

NOW_MS = 1_700_000_000_000  # 20 s after the beginning of a minute
NEXT_MINUTE_MS = 1_700_000_040_000
SLOT_LEASE_MS = 30_000
REQUESTS = limits_pb2.MEASURE_REQUESTS_PER_MINUTE
TOKENS = limits_pb2.MEASURE_TOKENS_PER_MINUTE
SLOTS = limits_pb2.MEASURE_CONCURRENT_REQUESTS


def _allowance(measure: Measure.ValueType = REQUESTS, limit: int = 100) -> Allowance:
    return Allowance(measure, limit, fresh_ms=1_000, slot_lease_ms=SLOT_LEASE_MS, now_ms=NOW_MS)


def _next_claim(one: Allowance, now_ms: int = NOW_MS) -> Claim:
    claim = one.next_claim(now_ms)
    assert claim is not None
    return claim


def _leased(one: Allowance, amount: int, remaining: int = 50, now_ms: int = NOW_MS) -> None:
    """Lease an amount."""
    one.want(amount)
    _next_claim(one, now_ms)
    one.apply_grant(amount, remaining, one.limit, now_ms)
    one.stop_waiting()


def test_a_new_allowance_has_nothing_available() -> None:
    assert _allowance().available == 0
    assert _allowance().next_claim(NOW_MS) is None


def test_a_claim_asks_for_what_all_waiting_requests_lack() -> None:
    one = _allowance()
    _leased(one, 3)
    one.want(5)
    one.want(4)
    claim = _next_claim(one)
    assert (claim.held_amount, claim.amount, claim.min_amount, claim.prefetch_amount) == (
        3,
        6,
        1,
        0,
    )
    assert claim.ends_at_ms == NEXT_MINUTE_MS


def test_what_is_granted_is_used_once() -> None:
    one = _allowance()
    _leased(one, 3)
    one.take(2, NOW_MS)
    assert one.available == 1
    one.want(5)
    assert _next_claim(one).held_amount == 3
    one.take(1, NOW_MS)
    one.apply_grant(4, 0, 100, NOW_MS)
    assert (one.used, one.available) == (3, 4)


def test_what_a_claim_returns_is_not_available_meanwhile() -> None:
    one = _allowance()
    _leased(one, 3)
    one.tick()
    assert _next_claim(one).held_amount == 0
    assert one.available == 0
    one.apply_grant(0, 53, 100, NOW_MS)
    assert one.available == 0


def test_what_a_claim_returns_is_not_exhausted_meanwhile() -> None:
    one = _allowance(limit=10)
    _leased(one, 10, remaining=0)
    one.take(3, NOW_MS)
    one.tick()
    assert one.remaining() == 7
    assert _next_claim(one).held_amount == 3
    assert (one.available, one.remaining()) == (0, 7)
    assert not one.is_exhausted(7, NOW_MS)
    assert one.is_exhausted(8, NOW_MS)
    one.failed()
    assert one.remaining() == 7
    one.want(6)
    assert _next_claim(one).held_amount == 3
    one.apply_grant(0, 5, 10, NOW_MS)  # others have taken two
    assert (one.remaining(), one.is_exhausted(6, NOW_MS)) == (5, True)


def test_what_a_request_waited_for_is_not_returned() -> None:
    one = _allowance()
    one.want(3)
    _next_claim(one)
    one.apply_grant(3, 50, 100, NOW_MS)
    one.tick()
    assert one.next_claim(NOW_MS) is None
    one.stop_waiting()
    assert _next_claim(one).held_amount == 0


def test_near_exhaustion_nothing_is_kept_for_later() -> None:
    one = _allowance()
    _leased(one, 30, remaining=12)
    one.take(20, NOW_MS)
    one.tick()
    assert (_next_claim(one).held_amount, one.available) == (20, 0)


def test_a_lost_answer_leaves_what_was_held() -> None:
    one = _allowance()
    _leased(one, 3)
    one.want(5)
    _next_claim(one)
    one.failed()
    assert one.available == 3
    one.want(5)
    assert _next_claim(one).held_amount == 3


def test_a_new_window_begins_with_nothing() -> None:
    one = _allowance()
    _leased(one, 3)
    one.take(1, NOW_MS)
    one.advance(NEXT_MINUTE_MS - 1)
    assert (one.used, one.available) == (1, 2)
    one.advance(NEXT_MINUTE_MS)
    assert (one.used, one.available) == (0, 0)
    assert not one.is_exhausted(1, NEXT_MINUTE_MS)


def test_a_grant_for_the_last_window_is_dropped() -> None:
    one = _allowance()
    one.want(5)
    _next_claim(one)
    one.apply_grant(5, 0, 100, NEXT_MINUTE_MS)
    assert one.available == 0


def test_an_answer_that_used_more_makes_a_debt_that_is_claimed() -> None:
    one = _allowance(limits_pb2.MEASURE_TOKENS_PER_MINUTE)
    _leased(one, 3)
    one.take(3, NOW_MS)
    one.settle(3, 13, NOW_MS)
    assert one.available == -10
    claim = _next_claim(one)
    assert (claim.held_amount, claim.amount, claim.reserved_amount) == (13, 0, 0)
    one.apply_grant(0, 37, 100, NOW_MS)
    assert one.available == 0
    assert one.remaining() == 37


def test_what_was_reserved_and_not_used_is_given_back() -> None:
    one = _allowance(TOKENS)
    _leased(one, 5)
    one.take(5, NOW_MS)
    assert (one.used, one.reserved) == (5, 5)
    one.settle(5, 3, NOW_MS)
    assert (one.used, one.reserved, one.available) == (3, 0, 2)


def test_a_reservation_counts_in_the_window_in_which_it_ends() -> None:
    one = _allowance(TOKENS)
    _leased(one, 5)
    one.take(5, NOW_MS)
    one.advance(NEXT_MINUTE_MS)
    assert (one.used, one.available) == (5, -5)
    claim = _next_claim(one, NEXT_MINUTE_MS)
    assert (claim.held_amount, claim.reserved_amount) == (5, 5)
    one.apply_grant(0, 95, 100, NEXT_MINUTE_MS)
    one.settle(5, 7, NEXT_MINUTE_MS)
    assert (one.used, one.available) == (7, -2)


def test_a_reservation_claims_all_that_it_needs_at_once() -> None:
    one = _allowance(TOKENS)
    _leased(one, 3)
    one.want(5)
    one.want(4)
    claim = _next_claim(one)
    # What it kept goes back, so that the LimitService sees what is left.
    assert (claim.held_amount, claim.amount, claim.min_amount) == (0, 9, 4)
    assert claim.overdraws


def test_reservations_are_refused_only_where_nothing_is_left() -> None:
    one = _allowance(TOKENS)
    _leased(one, 3, remaining=0)
    assert not one.is_exhausted(50, NOW_MS)
    one.take(3, NOW_MS)
    assert one.is_exhausted(1, NOW_MS)


def test_what_was_spent_before_a_reset_is_not() -> None:
    one = _allowance(TOKENS)
    _leased(one, 100, remaining=0)
    one.take(100, NOW_MS)
    one.settle(100, 100, NOW_MS)
    one.want(50)
    _next_claim(one)
    # All workers together have spent nothing since, and another one has reserved the rest.
    one.apply_grant(20, 0, 100, NOW_MS, spent=0)
    assert not one.is_spent
    one.take(20, NOW_MS)
    one.settle(20, 100, NOW_MS)
    assert one.is_spent


def test_what_is_spent_differs_from_what_is_reserved() -> None:
    one = _allowance(TOKENS)
    one.want(200)
    _next_claim(one)
    one.apply_grant(200, 0, 100, NOW_MS, spent=40)
    one.take(200, NOW_MS)
    assert not one.is_spent
    one.settle(200, 100, NOW_MS)
    assert one.is_spent


def test_reservations_are_renewed_after_a_third_of_their_lease() -> None:
    one = _allowance(limits_pb2.MEASURE_SPEND_PER_DAY)
    _leased(one, 5)
    one.take(5, NOW_MS)
    assert one.next_claim(NOW_MS + SLOT_LEASE_MS // 3) is None
    later = NOW_MS + SLOT_LEASE_MS // 3 + 1
    claim = _next_claim(one, later)
    assert (claim.held_amount, claim.reserved_amount) == (5, 5)
    assert claim.reserved_until_ms == later + SLOT_LEASE_MS


def test_a_longer_reservation_is_claimed_with_what_it_has() -> None:
    one = _allowance(TOKENS, limit=10)
    _leased(one, 8, remaining=2)
    one.take(8, NOW_MS)
    one.want(5, 8)
    claim = _next_claim(one)
    assert (claim.held_amount, claim.amount, claim.min_amount) == (0, 13, 13)
    one.apply_grant(13, 0, 10, NOW_MS)
    assert one.available == 5
    one.take(5, NOW_MS)
    assert (one.used, one.reserved) == (13, 13)


def test_what_a_tick_used_is_kept_for_the_next_ones() -> None:
    one = _allowance(limit=10_000)
    _leased(one, 30, remaining=9_000)
    one.take(10, NOW_MS)
    one.take(20, NOW_MS)
    one.tick()
    assert _next_claim(one).prefetch_amount == 60
    one.apply_grant(60, 8_940, 10_000, NOW_MS)
    one.take(4, NOW_MS)
    one.take(6, NOW_MS)
    one.tick()
    # It needs 20 from now on, and returns the rest.
    assert _next_claim(one).held_amount == 60
    one.apply_grant(0, 8_970, 10_000, NOW_MS)
    one.tick()
    assert _next_claim(one).held_amount == 40


def test_a_single_request_tells_nothing_about_the_next() -> None:
    one = _allowance(limit=10_000)
    _leased(one, 30, remaining=9_000)
    one.take(30, NOW_MS)
    one.tick()
    assert one.next_claim(NOW_MS) is None


@pytest.mark.parametrize(("remaining", "more", "is_urgent"), [(80, 9, False), (80, 10, True)])
def test_a_debt_is_urgent_where_little_is_left(remaining: int, more: int, is_urgent: bool) -> None:
    one = _allowance()
    _leased(one, 3, remaining)
    one.take(3, NOW_MS)
    assert not one.is_overdrawn
    one.settle(3, 3 + more, NOW_MS)
    assert one.is_overdrawn is is_urgent


def test_exhaustion_is_believed_for_a_moment() -> None:
    one = _allowance()
    one.want(2)
    _next_claim(one)
    one.apply_grant(0, 1, 100, NOW_MS)
    assert one.is_exhausted(2, NOW_MS + 999)
    assert not one.is_exhausted(1, NOW_MS)
    assert not one.is_exhausted(2, NOW_MS + 1_000)
    one.invalidate()
    assert not one.is_exhausted(2, NOW_MS)


def test_the_limit_in_force_replaces_that_of_the_identity() -> None:
    one = _allowance()
    one.want(1)
    _next_claim(one)
    one.apply_grant(1, 6, 7, NOW_MS)
    assert one.limit == 7
    assert one.remaining() == 7


def test_slots_that_are_not_renewed_are_lost_unless_in_use() -> None:
    one = _allowance(SLOTS)
    _leased(one, 3)
    one.take(1, NOW_MS)
    one.advance(NOW_MS + SLOT_LEASE_MS - 1)
    assert one.available == 2
    one.advance(NOW_MS + SLOT_LEASE_MS)
    assert (one.used, one.available) == (1, 0)


def test_slots_in_use_are_renewed_after_a_third_of_their_lease() -> None:
    one = _allowance(SLOTS)
    _leased(one, 1)
    one.take(1, NOW_MS)
    assert one.next_claim(NOW_MS + SLOT_LEASE_MS // 3) is None
    later = NOW_MS + SLOT_LEASE_MS // 3 + 1
    claim = _next_claim(one, later)
    assert (claim.held_amount, claim.ends_at_ms) == (1, later + SLOT_LEASE_MS)


def test_slots_are_leased_ahead_as_many_are_in_use() -> None:
    one = _allowance(SLOTS, limit=1_000)
    _leased(one, 20, remaining=900)
    one.take(20, NOW_MS)
    one.want(1)
    claim = _next_claim(one)
    assert (claim.held_amount, claim.amount, claim.prefetch_amount) == (20, 1, 10)


@pytest.mark.parametrize(("remaining", "keeps"), [(50, 1), (12, 0)])
def test_free_slots_are_kept_while_enough_are_left(remaining: int, keeps: int) -> None:
    one = _allowance(SLOTS)
    _leased(one, 4, remaining)
    one.take(4, NOW_MS)
    one.settle(2, 0, NOW_MS)
    one.tick()
    claim = one.next_claim(NOW_MS)
    assert (4 if claim is None else claim.held_amount) == 2 + keeps


def test_a_month_that_nobody_uses_is_closed_and_forgotten() -> None:
    one = _allowance(limits_pb2.MEASURE_SPEND_PER_MONTH)
    _leased(one, 10)
    one.take(6, NOW_MS)
    one.settle(6, 4, NOW_MS)
    assert not one.is_forgotten(NOW_MS)
    later = NOW_MS + 600_001
    claim = _next_claim(one, later)
    assert (claim.releases, claim.held_amount) == (True, 4)
    # What an answer costs meanwhile is claimed anew.
    one.settle(0, 3, later)
    one.apply_grant(0, 96, 100, later)
    assert (one.used, one.available) == (3, -3)
    claim = _next_claim(one, later)
    assert (claim.releases, claim.held_amount) == (False, 3)


def test_what_is_in_progress_is_neither_closed_nor_forgotten() -> None:
    one = _allowance(limits_pb2.MEASURE_SPEND_PER_MONTH)
    _leased(one, 10)
    one.take(10, NOW_MS)
    later = NOW_MS + 600_001
    assert not _next_claim(one, later).releases
    one.apply_grant(0, 90, 100, later)
    assert not one.is_forgotten(one.window.end_ms)


def test_an_allowance_of_which_nothing_was_used_is_forgotten() -> None:
    one = _allowance()
    assert one.is_forgotten(NOW_MS)
    one.want(1)
    assert not one.is_forgotten(NOW_MS)
    _next_claim(one)
    assert not one.is_forgotten(NOW_MS)
    one.apply_grant(1, 5, 100, NOW_MS)
    one.stop_waiting()
    assert not one.is_forgotten(NOW_MS)
    one.take(1, NOW_MS)
    assert not one.is_forgotten(NOW_MS)
    assert one.is_forgotten(NEXT_MINUTE_MS)
