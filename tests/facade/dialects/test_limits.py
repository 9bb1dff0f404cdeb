from collections.abc import Mapping, Sequence

from facade.credentials import ApiFormat
from facade.dialects.limits import set_limits
from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import LimitState
from services.common.messages.passthrough_answer import CallerLimit

RESET_MS = 1_700_000_040_000
REQUESTS = LimitState(
    measure=limits_pb2.MEASURE_REQUESTS_PER_MINUTE, limit=1_000, remaining=8, reset_ms=RESET_MS
)
TOKENS = LimitState(
    measure=limits_pb2.MEASURE_TOKENS_PER_MINUTE, limit=500, remaining=499, reset_ms=RESET_MS
)
SLOTS = LimitState(
    measure=limits_pb2.MEASURE_CONCURRENT_REQUESTS, limit=5, remaining=1, reset_ms=RESET_MS
)


def with_limits(
    api_format: ApiFormat, headers: Mapping[str, str], limits: Sequence[LimitState], now_ms: int
) -> dict[str, str]:
    """Return headers with those of limits, which are the same of limits within a process."""
    told = dict(headers)
    set_limits(api_format, told, limits, now_ms)
    plain = dict(headers)
    within = [CallerLimit(one.measure, one.limit, one.remaining, one.reset_ms) for one in limits]
    assert [one.message() for one in within] == limits
    set_limits(api_format, plain, within, now_ms)
    assert plain == told
    return told


def test_openais_names_take_the_place_of_the_providers() -> None:
    headers = {"x-ratelimit-limit-requests": "7", "x-ratelimit-reset-tokens": "1s", "x-other": "a"}
    assert with_limits(ApiFormat.OPENAI, headers, [REQUESTS], RESET_MS - 12_500) == {
        "x-other": "a",
        "x-ratelimit-limit-requests": "1000",
        "x-ratelimit-remaining-requests": "8",
        "x-ratelimit-reset-requests": "12.5s",
    }


def test_a_reset_within_a_second_is_in_milliseconds() -> None:
    for left_ms, text in ((7, "7ms"), (0, "0ms"), (-1, "0ms"), (1_000, "1s")):
        headers = with_limits(ApiFormat.OPENAI, {}, [TOKENS], RESET_MS - left_ms)
        assert headers["x-ratelimit-reset-tokens"] == text


def test_anthropics_names_have_the_subject_first() -> None:
    headers = {"anthropic-ratelimit-unified-status": "allowed", "anthropic-version": "1"}
    reset = "2023-11-14T22:14:00Z"
    assert with_limits(ApiFormat.ANTHROPIC, headers, [REQUESTS, TOKENS], RESET_MS - 1) == {
        "anthropic-version": "1",
        "anthropic-ratelimit-requests-limit": "1000",
        "anthropic-ratelimit-requests-remaining": "8",
        "anthropic-ratelimit-requests-reset": reset,
        "anthropic-ratelimit-tokens-limit": "500",
        "anthropic-ratelimit-tokens-remaining": "499",
        "anthropic-ratelimit-tokens-reset": reset,
    }


def test_without_a_limit_to_tell_the_providers_headers_stay() -> None:
    headers = {"x-ratelimit-limit-requests": "7"}
    for api_format in (ApiFormat.OPENAI, ApiFormat.ANTHROPIC, ApiFormat.ENVELOPE):
        assert with_limits(api_format, headers, [SLOTS], 0) == headers
    assert with_limits(ApiFormat.ENVELOPE, headers, [REQUESTS], 0) == headers
