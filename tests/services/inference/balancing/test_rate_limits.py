"""Responses' headers about when a deployment can be called again."""

from typing import Any

import pytest

from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError
from services.inference.balancing.rate_limits import (
    LONGEST_WAIT_S,
    REFUSED_WAIT_S,
    UNTOLD_WAIT_S,
    Cooldown,
    after_failure,
    exhausted,
)
from tests.grid import each_row

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
REASONS = {
    401: errors_pb2.REASON_UPSTREAM_AUTH,
    403: errors_pb2.REASON_UPSTREAM_AUTH,
    404: errors_pb2.REASON_MODEL_NOT_FOUND,
    429: errors_pb2.REASON_UPSTREAM_RATE_LIMITED,
    529: errors_pb2.REASON_UPSTREAM_OVERLOADED,
}


def failed(status: int, headers: dict[str, str] | None = None, **fields: Any) -> Cooldown | None:
    reason = REASONS.get(status, errors_pb2.REASON_UPSTREAM_ERROR)
    error = UpstreamError(reason, "no", status=status, **fields)
    return after_failure(error, headers or {}, lambda: NOW)


@each_row(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "7", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Fri, 15 Jan 2027 08:01:00 GMT"}, 60),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30.5s"}, 90.5),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "9s"}, 5),
        ({"retry-after": "soon"}, UNTOLD_WAIT_S),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "1e300"}, LONGEST_WAIT_S),
        ({}, UNTOLD_WAIT_S),
    ],
)
def test_a_rate_limit_lasts_as_long_as_it_says(headers, wait_s):
    assert failed(429, headers) == (pytest.approx(wait_s), "rate_limited")


def test_a_wait_in_the_body_counts_without_one_in_the_head():
    assert failed(429, retry_after_s=17) == (17, "rate_limited")
    assert failed(429, {"retry-after": "3"}, retry_after_s=17) == (3, "rate_limited")


def test_an_overloaded_server_is_left_alone_if_it_asks_for_it():
    assert failed(529, {"retry-after": "4"}) == (4, "rate_limited")
    assert failed(503, {"retry-after": "4"}) == (4, "rate_limited")
    assert failed(529) is failed(503) is failed(500, {"retry-after": "4"}) is None


def test_a_refused_account_is_left_alone_refused_content_not():
    assert failed(401) == failed(404) == (REFUSED_WAIT_S, "refused")
    assert failed(403) is failed(400) is None
    without_key = UpstreamError(errors_pb2.REASON_UPSTREAM_AUTH, "no key")
    assert after_failure(without_key, {}, lambda: NOW) == (REFUSED_WAIT_S, "refused")


@each_row(
    ("reset", "wait_s"),
    [
        ("20ms", 0.02),
        ("0s", 0),
        ("6m0s", 360),
        ("1h2m3s", LONGEST_WAIT_S),
        ("2.5", 2.5),
        (str(int(NOW) + 30), 30),
        ("2027-01-15T08:00:10Z", 10),
        ("2027-01-15T07:00:00Z", 0),
        ("", UNTOLD_WAIT_S),
        ("later", UNTOLD_WAIT_S),
        ("nan", UNTOLD_WAIT_S),
        ("9" * 65, UNTOLD_WAIT_S),
    ],
)
def test_a_reset_is_read_in_every_form(reset, wait_s):
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": reset}
    assert exhausted(headers, lambda: NOW) == (pytest.approx(wait_s), "exhausted")


def test_the_longest_of_several_exhausted_limits_counts():
    headers = {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:02Z",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:40Z",
        "anthropic-ratelimit-output-tokens-remaining": "5",
        "anthropic-ratelimit-output-tokens-reset": "2027-01-15T09:00:00Z",
    }
    assert exhausted(headers, lambda: NOW) == (40, "exhausted")


def test_limits_that_are_not_exhausted_say_nothing():
    assert exhausted({"x-ratelimit-remaining-requests": "1"}, lambda: NOW) is None
    assert exhausted({}, lambda: NOW) is None
