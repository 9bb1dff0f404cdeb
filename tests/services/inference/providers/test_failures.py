from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime, formatdate
from typing import Any

import orjson
import pytest

from gateway.errors.v1.errors_pb2 import Reason
from services.common.errors import UpstreamError
from services.inference.providers.failures import (
    classify,
    in_band,
    retry_after,
)
from tests.grid import each_row

NOW = 1_000_000_000.0


def judged(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> UpstreamError:
    return classify("acme", status, headers or {}, body, secrets=("sk-own-key-1",), now=lambda: NOW)


def error_body(message: str = "words", **fields: Any) -> bytes:
    return orjson.dumps({"error": {"message": message, **fields}})


def reason_of(error: UpstreamError) -> str:
    return Reason.Name(error.reason).removeprefix("REASON_")


@each_row(
    ("status", "reason"),
    [
        (302, "UPSTREAM_ERROR"),
        (400, "UPSTREAM_REJECTED"),
        (401, "UPSTREAM_AUTH"),
        (402, "UPSTREAM_AUTH"),
        (403, "UPSTREAM_AUTH"),
        (404, "MODEL_NOT_FOUND"),
        (408, "UPSTREAM_TIMEOUT"),
        (409, "UPSTREAM_REJECTED"),
        (413, "TOO_LARGE"),
        (422, "UPSTREAM_REJECTED"),
        (425, "UPSTREAM_ERROR"),
        (429, "UPSTREAM_RATE_LIMITED"),
        (500, "UPSTREAM_ERROR"),
        (503, "UPSTREAM_ERROR"),
        (529, "UPSTREAM_OVERLOADED"),
    ],
)
def test_a_status_means_one_reason_and_is_kept_with_the_body(status: int, reason: str) -> None:
    error = judged(status, b"the body")
    assert (reason_of(error), error.status, error.body) == (reason, status, "the body")


def test_an_overloaded_provider_is_known_by_its_error_type_too() -> None:
    assert reason_of(judged(503, error_body(type="overloaded_error"))) == "UPSTREAM_OVERLOADED"


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens is too large: 64000",
        "the context parameter is not supported",
        "image exceeds the maximum size",
        "too many tools",
        "the input must be a string",
    ],
)
def test_other_refusals_are_no_long_conversation(words: str) -> None:
    assert reason_of(judged(400, error_body(words))) == "UPSTREAM_REJECTED"


@each_row(
    "body",
    [
        error_body(code="context_length_exceeded"),
        error_body("This model's maximum context length is 8192 tokens. However, …"),
        error_body("prompt is too long: 210000 tokens > 200000 maximum"),
        error_body("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        error_body("the request exceeds the available context size"),
        error_body(type="exceed_context_size_error"),
        error_body(
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 9]"
        ),
        error_body("Invalid request: Your request exceeded model token limit: 262144"),
        error_body("Prompt too long", code="1261"),
        error_body("Prompt exceeds max length"),
        error_body("too many tokens: total number of tokens in the prompt cannot exceed 4081"),
        error_body("`inputs` tokens + `max_new_tokens` must be <= 4097"),
        error_body("Request body too large for gpt-4o model. Max size: 8000 tokens."),
        error_body("invalid params, context window exceeds limit"),
        error_body("Input length 5000 exceeds maximum allowed token size 4096"),
        error_body("The model is loaded with a prompt greater than the context length"),
        error_body("prompt token count of 70000 exceeds the limit of 64000"),
        error_body("Total tokens of image and text exceed max message tokens"),
        error_body("prompt too long; exceeded max context length by 12 tokens"),
        # OpenRouter, OpenAI, watsonx, Cloudflare, LM Studio, vLLM, oMLX, GitHub Copilot, StepFun,
        # Baidu, Zhipu, Qianfan, llama-cpp-python, Hugging Face
        error_body(
            "Input length 131393 exceeds the maximum allowed input length of 131040 tokens."
        ),
        error_body("Input tokens exceed the configured limit of 272000 tokens. Your messages did."),
        error_body("the number of input tokens 5000 cannot exceed the total tokens limit 4096"),
        error_body(
            "the estimated number of input and maximum output tokens (9) exceeded this model "
            "context window limit (8)"
        ),
        error_body("The model has crashed: context size has been exceeded."),
        error_body("Input prompt (9000 tokens) is too long and exceeds limit of 8192"),
        error_body("Prompt has 5000 tokens, but the configured context size is 4096 tokens"),
        error_body("tokens in request more than max tokens allowed"),
        error_body("The prompt length is larger than the max tokens"),
        error_body("prompt tokens too long"),
        error_body("Prompt 超长"),
        error_body("输入长度超过模型上限"),
        error_body("Requested tokens (9000) exceed context window of 8192"),
        error_body("input length exceeds context length"),
        error_body("context_window_exceeded", code="context_window_exceeded"),
    ],
)
def test_a_too_long_conversation_is_reported_as_such(body: bytes) -> None:
    assert reason_of(judged(400, body)) == "CONTEXT_LENGTH_EXCEEDED"


@pytest.mark.parametrize(
    "body",
    [
        error_body(code="content_filter"),
        error_body(code="content_policy_violation"),
        error_body(code="x", innererror={"code": "ResponsibleAIPolicyViolation"}),
    ],
)
def test_a_filter_that_stopped_the_request_is_reported_as_such(body: bytes) -> None:
    assert reason_of(judged(400, body)) == "CONTENT_FILTER"


@pytest.mark.parametrize(
    "body",
    [
        error_body("words"),
        b'{"error": "words"}',
        b'[{"error": {"message": "words", "code": 400}}]',
        b'{"object": "error", "message": "words", "type": "BadRequestError", "code": 400}',
        b'{"detail": "words"}',
        b'{"type": "error", "error": {"type": "invalid_request_error", "message": "words"}}',
        b" words\n",
    ],
)
def test_a_refusal_keeps_the_provider_s_message(body: bytes) -> None:
    assert judged(400, body).message == "words"


@pytest.mark.parametrize("body", [b"", b"<html>no</html>", b"17", b"[]", b"{}", b'{"error": 5}'])
def test_a_refusal_without_a_message_gets_a_default_one(body: bytes) -> None:
    assert judged(400, body).message == "the provider acme rejected the request (status 400)"


@each_row("status", [302, 401, 402, 403, 404, 408, 413, 429, 500, 502, 529])
def test_messages_not_about_the_request_are_hidden(status: int) -> None:
    assert "secret words" not in judged(status, error_body("secret words")).message


def test_an_unpaid_bill_is_an_account_error_despite_400() -> None:
    error = judged(400, error_body("Your credit balance is too low to access the API."))
    assert reason_of(error) == "UPSTREAM_AUTH"
    assert "balance" not in error.message


def test_keys_are_taken_out_of_a_providers_words() -> None:
    told = "key sk-own-key-1, other sk-proj-abcdef123, gsk_abcdefgh, header Bearer abc.def"
    message = judged(400, error_body(told)).message
    assert message == "key [redacted], other [redacted], [redacted], header [redacted]"


def test_words_body_and_wait_are_bounded() -> None:
    error = judged(400, error_body("x" * 9000))
    assert (len(error.message), len(error.body)) == (2000, 4096)
    assert judged(429, headers={"retry-after": "1e300"}).retry_after_s == 86_400


@each_row(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "6.2"}, 7),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "²"}, None),
        ({"retry-after": "Mon, 01 Jan 99999 00:00:00 GMT"}, None),
        ({"retry-after": "Mon, 01 Jan 9999 00:00:00 -2359"}, 86_400),
        ({"retry-after": "Mon, 01 Jan 0001 00:00:00 +2359"}, 0),
        ({"retry-after": "1 Jan 2001 00:00:00 +99999999999"}, None),
        ({"retry-after": "0 " * 10_000}, None),
        ({"retry-after-ms": "1200", "retry-after": "9"}, 2),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, 0),
        (
            {
                "retry-after": format_datetime(
                    datetime.fromtimestamp(NOW + 5, UTC).astimezone(timezone(timedelta(hours=2)))
                )
            },
            5,
        ),
    ],
)
def test_how_long_to_wait_is_read_in_every_form(
    headers: dict[str, str], seconds: int | None
) -> None:
    assert retry_after(headers, lambda: NOW) == seconds


GOOGLE = "type.googleapis.com/google.rpc."


@pytest.mark.parametrize(
    ("delay", "wait"),
    [("34s", 34), ("0.5s", 1), ("90000s", 86_400), ("-1s", None), ("x", None), (7, None)],
)
def test_google_s_retry_delay_is_read_from_the_body(delay: object, wait: int | None) -> None:
    details = [{"@type": f"{GOOGLE}QuotaFailure"}, 7, None, {"retryDelay": delay}]
    body = error_body(code=429, status="RESOURCE_EXHAUSTED", details=details)
    assert judged(429, body).upstream_retry_after_s == wait
    assert judged(429, body, {"retry-after": "3"}).upstream_retry_after_s == 3
    assert judged(400, body).upstream_retry_after_s is None
    assert in_band("acme", body).upstream_retry_after_s == wait


@pytest.mark.parametrize("details", [None, "x", 7, {"reason": "API_KEY_INVALID"}, [[]]])
def test_details_of_another_shape_say_nothing(details: object) -> None:
    assert reason_of(judged(400, error_body(details=details))) == "UPSTREAM_REJECTED"


def test_google_s_invalid_key_is_an_auth_error_despite_400() -> None:
    details = [{"@type": f"{GOOGLE}ErrorInfo", "reason": "API_KEY_INVALID"}]
    error = judged(400, error_body("API key not valid.", details=details))
    assert reason_of(error) == "UPSTREAM_AUTH"
    assert "API key not valid" not in error.message


def test_a_rate_limit_and_a_failing_server_carry_the_wait() -> None:
    waits = [judged(status, headers={"retry-after": "4"}).retry_after_s for status in (429, 503)]
    assert waits == [4, 4]


@each_row(
    ("error", "reason", "status"),
    [
        ({"type": "overloaded_error", "message": "m"}, "UPSTREAM_OVERLOADED", 529),
        ({"type": "rate_limit_error"}, "UPSTREAM_RATE_LIMITED", 429),
        ({"type": "authentication_error"}, "UPSTREAM_AUTH", 401),
        ({"type": "invalid_request_error", "message": "m"}, "UPSTREAM_REJECTED", 400),
        ({"message": "m", "code": 502}, "UPSTREAM_ERROR", 502),
        ({"message": "m", "code": "context_length_exceeded"}, "CONTEXT_LENGTH_EXCEEDED", 400),
        ({"message": "m", "type": "server_error"}, "UPSTREAM_ERROR", 500),
        ({"message": "m", "code": 7}, "UPSTREAM_ERROR", 500),
        ({"message": "m", "code": "05000000000"}, "UPSTREAM_ERROR", 500),
        ({"message": "m", "code": "4" * 5000}, "UPSTREAM_ERROR", 500),
        ({"message": "m", "code": -500}, "UPSTREAM_ERROR", 500),
        ({"message": "m", "code": "٤٠٠"}, "UPSTREAM_ERROR", 500),
        ({"message": ["x" * 100_000], "code": 400}, "UPSTREAM_ERROR", 500),
        ("words", "UPSTREAM_ERROR", 500),
    ],
)
def test_an_error_in_the_body_sets_the_status(error: object, reason: str, status: int) -> None:
    found = in_band("acme", orjson.dumps({"error": error}))
    assert (reason_of(found), found.status) == (reason, status)


def test_a_refusal_keeps_the_provider_s_code_and_param() -> None:
    error = {"message": "m", "code": "unsupported_value", "param": "messages[0].content[1].type"}
    for found in (
        judged(400, orjson.dumps({"error": error})),
        in_band("acme", orjson.dumps({"error": error | {"type": "invalid_request_error"}})),
    ):
        assert (found.upstream_code, found.upstream_param) == (error["code"], error["param"])
        assert found.param == ""


@pytest.mark.parametrize("code", [400, 3001, "3230"])
def test_codes_that_are_numbers_are_kept_as_they_were_written(code: int | str) -> None:
    # vLLM and OpenRouter write the status, Mistral a number of its own.
    error = {"object": "error", "message": "m", "type": "BadRequestError", "code": code}
    found = judged(400, orjson.dumps(error))
    assert found.upstream_code == code and type(found.upstream_code) is type(code)


def test_openrouter_s_error_has_the_inner_provider_s_message() -> None:
    raw = '{"error": {"message": "Unsupported parameter"}}'
    metadata = {"raw": raw, "provider_name": "OpenAI"}
    error = {"message": "Provider returned error", "code": 400, "metadata": metadata}
    assert judged(400, orjson.dumps({"error": error})).message == f"Provider returned error: {raw}"


@each_row(
    ("status", "told"),
    [
        (401, {"code": "invalid_api_key", "param": "key"}),  # of the gateway's own account
        (429, {"code": "insufficient_quota"}),
        (404, {"code": "model_not_found", "param": "model"}),
        (500, {"code": "oops"}),
        (400, {"type": "context_length_exceeded", "code": "too_long"}),
        (400, {"code": 400, "status": "INVALID_ARGUMENT"}),
        (400, {"code": True, "param": "a b"}),
        (400, {"code": -1}),
        (400, {"code": "sk-own-key-1", "param": "sk-own-key-1"}),
        (400, {"code": ["x"], "param": {"a": 1}}),
        (400, {"code": "x\n", "param": "<b>"}),
    ],
)
def test_other_codes_and_params_stay_here(status: int, told: dict[str, object]) -> None:
    found = judged(status, orjson.dumps({"error": {"message": "m", **told}}))
    assert (found.upstream_code, found.upstream_param) == ("", "")
