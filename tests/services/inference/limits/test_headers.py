from gateway.accounts.v1 import limits_pb2
from gateway.conversation.v1 import conversation_pb2
from services.inference.limits.headers import Standing, put_headers

RESET_MS = 1_700_000_040_000
REQUESTS = limits_pb2.MEASURE_REQUESTS_PER_MINUTE
TOKENS = limits_pb2.MEASURE_TOKENS_PER_MINUTE
LOOSE = Standing(REQUESTS, 10, 9, RESET_MS)
TIGHT = Standing(REQUESTS, 1_000, 8, RESET_MS)
SLOTS = Standing(limits_pb2.MEASURE_CONCURRENT_REQUESTS, 5, 1, RESET_MS)


def test_the_tightest_limit_is_told_in_place_of_the_providers() -> None:
    headers = {"x-ratelimit-limit-requests": "7", "x-ratelimit-reset-tokens": "1s", "x-other": "a"}
    standings = [LOOSE, TIGHT, SLOTS]
    put_headers(headers, conversation_pb2.DIALECT_OPENAI, standings, RESET_MS - 12_500)
    assert headers == {
        "x-other": "a",
        "x-ratelimit-limit-requests": "1000",
        "x-ratelimit-remaining-requests": "8",
        "x-ratelimit-reset-requests": "12.5s",
    }


def test_a_reset_within_a_second_is_in_milliseconds() -> None:
    headers: dict[str, str] = {}
    tokens = Standing(TOKENS, 5, 0, RESET_MS)
    put_headers(headers, conversation_pb2.DIALECT_RESPONSES, [tokens], RESET_MS - 7)
    assert headers["x-ratelimit-reset-tokens"] == "7ms"


def test_anthropics_names_have_the_subject_first() -> None:
    headers = {"anthropic-ratelimit-unified-status": "allowed", "anthropic-version": "1"}
    standings = [LOOSE, Standing(TOKENS, 500, 499, RESET_MS)]
    put_headers(headers, conversation_pb2.DIALECT_ANTHROPIC, standings, RESET_MS - 1)
    reset = "2023-11-14T22:14:00Z"
    assert headers == {
        "anthropic-version": "1",
        "anthropic-ratelimit-requests-limit": "10",
        "anthropic-ratelimit-requests-remaining": "9",
        "anthropic-ratelimit-requests-reset": reset,
        "anthropic-ratelimit-tokens-limit": "500",
        "anthropic-ratelimit-tokens-remaining": "499",
        "anthropic-ratelimit-tokens-reset": reset,
    }


def test_without_a_limit_to_tell_the_providers_headers_stay() -> None:
    headers = {"x-ratelimit-limit-requests": "7"}
    put_headers(headers, conversation_pb2.DIALECT_OPENAI, [SLOTS], 0)
    put_headers(headers, conversation_pb2.DIALECT_UNSPECIFIED, [LOOSE], 0)
    assert headers == {"x-ratelimit-limit-requests": "7"}
