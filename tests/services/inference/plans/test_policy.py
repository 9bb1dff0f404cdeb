"""Which failures are tried again, which move on, and how long a retry waits."""

import pytest

from services.common.errors import UpstreamError
from services.inference.plans.policy import (
    LONGEST_DELAY_S,
    DivergedError,
    FallbackRule,
    Retries,
    is_transient,
    leads_to_next_step,
)
from services.inference.providers.failures import broken_answer, classify, cut_off, in_band
from tests.grid import each_row
from tests.services.inference.fallback.scripted_engine import silence


def answered(status: int, body: bytes = b"{}") -> UpstreamError:
    return classify("p", status, {}, body, now=lambda: 0.0)


CONTEXT = b'{"error": {"message": "prompt is too long", "type": "invalid_request_error"}}'
FILTER = b'{"error": {"message": "no", "code": "content_filter"}}'


@each_row("status", [408, 425, 429, 500, 502, 503, 504, 529])
def test_statuses_that_pass_are_transient_and_move_on(status):
    error = answered(status)
    assert is_transient(error)
    assert leads_to_next_step(error, None)


@pytest.mark.parametrize(
    "error",
    [
        cut_off("p"),
        silence(),
        broken_answer("p", "answered nonsense"),
        in_band("p", b'{"error": {"message": "x", "type": "overloaded_error"}}'),
        in_band("p", b'{"error": {"message": "x"}}'),
    ],
)
def test_broken_and_silent_answers_always_move_on(error):
    assert is_transient(error)
    assert leads_to_next_step(error, None)


@pytest.mark.parametrize("status", [301, 401, 402, 403, 404])
def test_account_faults_move_on_without_a_retry(status):
    error = answered(status)
    assert not is_transient(error)
    assert leads_to_next_step(error, None)


def test_a_too_long_conversation_moves_on_without_a_retry():
    assert not is_transient(answered(400, CONTEXT))
    assert leads_to_next_step(answered(400, CONTEXT), None)


@pytest.mark.parametrize(
    "error", [answered(400), answered(413), answered(422), answered(400, FILTER)]
)
def test_other_refusals_end_the_chain(error):
    assert not is_transient(error)
    assert not leads_to_next_step(error, None)


def test_fail_on_decides_alone():
    rule = FallbackRule(frozenset({400, 503}), ("strasse", "quota"))
    assert leads_to_next_step(answered(503), rule)
    assert leads_to_next_step(answered(400), rule)
    assert not leads_to_next_step(answered(500), rule)
    assert not leads_to_next_step(answered(401), rule)
    assert leads_to_next_step(answered(500, b'{"error": "Out of QUOTA"}'), rule)
    assert leads_to_next_step(answered(500, "STRAßE".encode()), rule)
    nothing = FallbackRule(frozenset(), ())
    assert not leads_to_next_step(answered(503), nothing)


def test_connection_faults_move_on_whatever_fail_on_is():
    rule = FallbackRule(frozenset({400}), ())
    assert leads_to_next_step(cut_off("p"), rule)
    assert leads_to_next_step(silence(), rule)
    assert leads_to_next_step(broken_answer("p", "streamed nonsense"), rule)
    assert leads_to_next_step(DivergedError("p"), rule)


def test_another_answer_than_was_sent_is_not_asked_for_again():
    assert not is_transient(DivergedError("p"))


def test_delays_grow_with_jitter_up_to_half_a_minute():
    retries = Retries(10, 2, 0.25)
    assert [retries.delay(n, lambda low, high: low) for n in range(8)] == [
        *(0.5, 1, 2, 4, 8, 16),
        *(30, 30),
    ]
    assert retries.delay(0, lambda low, high: high) == 0.75
    assert Retries(10, 1).delay(9, max) == 0.5
    assert Retries(10, 1e300).delay(9, max) == 30


def test_jitter_is_added_up_to_the_longest_delay():
    retries = Retries(factor=2, jitter_s=20)
    assert retries.delay(1, lambda least, most: least) == 1
    assert retries.delay(1, lambda least, most: most) == 21
    assert retries.delay(5, lambda least, most: most) == LONGEST_DELAY_S
    assert retries.delay(9, lambda least, most: most) == LONGEST_DELAY_S
