"""Refusals before and after authentication have the endpoint's own format."""

import io
import re
from typing import Any

import orjson
import pytest

from tests.gateway_in_process import Gateway
from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"
COUNT = "/beta/v1/messages/count_tokens"
CODING = "/coding/v1/messages"
HELLO = [{"role": "user", "content": "Hello"}]
GOOD = {"model": "sandbox/echo", "max_tokens": 100, "messages": HELLO}


async def ask(gateway: Gateway, path: str, method: str = "POST", **options: Any):
    options.setdefault("headers", gateway.bearer() if path == CHAT else gateway.api_key())
    async with gateway.http.request(method, gateway.url + path, **options) as answer:
        body = await answer.json()
        assert answer.headers["x-request-id"] == answer.headers["request-id"]
        return answer, body


def assert_refused(path: str, answer: Any, body: Any, status: int, param: str | None = None) -> str:
    """Assert the status and the format; give the message."""
    assert answer.status == status, body
    assert answer.content_type == "application/json"
    if path == CHAT:
        error = body["error"]
        assert set(error) >= {"message", "type", "param", "code"}
    else:
        assert body["type"] == "error"
        assert body["request_id"] == answer.headers["request-id"]
        error = body["error"]
        assert set(error) >= {"message", "type"}
    if param is not None:
        assert error["param"] == param
        assert param in error["message"]
    return error["message"]


STEP = {"step_id": "a", "model": "sandbox/echo"}
FIRST_STEP = "fallback_config.steps[0]"


def chain(*steps: dict[str, Any]) -> dict[str, Any]:
    config = {"strategy": {"mode": "sequential"}, "steps": steps}
    return {"fallback": "strict", "fallback_config": config}


@pytest.mark.parametrize(
    ("fields", "param", "says"),
    [
        ({"top_logprobs": 1}, "top_logprobs", "allowed only if logprobs is true"),
        (
            {"logprobs": False, "top_logprobs": 0},
            "top_logprobs",
            "allowed only if logprobs is true",
        ),
        (
            chain({**STEP, "parameters": {"top_logprobs": 1}}),
            f"{FIRST_STEP}.parameters.top_logprobs",
            "allowed only if logprobs is true",
        ),
        (
            {**chain({**STEP, "parameters": {"logprobs": False}}), "logprobs": True}
            | {"top_logprobs": 1},
            f"{FIRST_STEP}.parameters.top_logprobs",
            "allowed only if logprobs is true",
        ),
        (
            chain(STEP, STEP),
            "fallback_config.steps[1].step_id",
            f"must be unique; {FIRST_STEP} has the same id 'a'",
        ),
    ],
)
async def test_refusals_of_the_service_name_the_caller_s_field(gateway, fields, param, says):
    answer, body = await ask(gateway, CHAT, json={**GOOD, **fields})
    message = assert_refused(CHAT, answer, body, 400, param)
    assert message == f"{param}: {says}"


@pytest.mark.parametrize("path", [CHAT, MESSAGES, COUNT, CODING])
class TestEveryEndpoint:
    async def test_no_credential(self, gateway, path):
        headers = {"compat-version": "2023-06-01"}
        answer, body = await ask(gateway, path, json=GOOD, headers=headers)
        assert_refused(path, answer, body, 401)
        assert body["error"]["type"] == "authentication_error"

    async def test_a_key_nobody_has(self, gateway, path):
        headers = {"Authorization": f"Bearer gw-{'x' * 43}"}
        answer, body = await ask(gateway, path, json=GOOD, headers=headers)
        assert_refused(path, answer, body, 401)
        assert answer.headers["x-should-retry"] == "false"

    async def test_a_model_nobody_has(self, gateway, path):
        answer, body = await ask(gateway, path, json={**GOOD, "model": "nobody"})
        assert_refused(path, answer, body, 404)
        assert answer.headers["x-should-retry"] == "false"

    async def test_both_credentials(self, gateway, path):
        headers = {**gateway.bearer(), **gateway.api_key()}
        answer, body = await ask(gateway, path, json=GOOD, headers=headers)
        if path == CODING:  # its clients send their key in both
            assert answer.status == 200, body
            headers["x-api-key"] = f"gw-{'x' * 43}"
            answer, body = await ask(gateway, path, json=GOOD, headers=headers)
        assert_refused(path, answer, body, 400)

    async def test_a_wrong_version(self, gateway, path):
        headers = {**gateway.bearer(), "compat-version": "2024-01-01"}
        answer, body = await ask(gateway, path, json=GOOD, headers=headers)
        assert_refused(path, answer, body, 400, "compat-version")

    @each_row("body", [b"", b"{", b"[]", b'"x"', b'{"model":"m",', b"\xff\xfe", b"{}" * 2, b"nul"])
    async def test_what_is_no_json_object(self, gateway, path, body):
        headers = {
            **(gateway.bearer() if path == CHAT else gateway.api_key()),
            "Content-Type": "application/json",
        }
        answer, answer_body = await ask(gateway, path, data=body, headers=headers)
        assert_refused(path, answer, answer_body, 400)

    async def test_deep_nesting(self, gateway, path):
        headers = {
            **(gateway.bearer() if path == CHAT else gateway.api_key()),
            "Content-Type": "application/json",
        }
        deep = b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        answer, body = await ask(gateway, path, data=deep, headers=headers)
        assert_refused(path, answer, body, 400)

    async def test_another_content_type(self, gateway, path):
        answer, body = await ask(gateway, path, data="a=b")
        assert_refused(path, answer, body, 415)

    async def test_a_body_over_the_limit(self, gateway, path):
        big = {**GOOD, "messages": [{"role": "user", "content": "x" * (1 << 20)}]}
        headers = {
            **(gateway.bearer() if path == CHAT else gateway.api_key()),
            "Content-Type": "application/json",
        }
        data = io.BytesIO(orjson.dumps(big))
        answer, body = await ask(gateway, path, data=data, headers=headers)
        assert_refused(path, answer, body, 413)

    async def test_another_method(self, gateway, path):
        answer, body = await ask(gateway, path, "PUT", json=GOOD)
        assert "POST" in assert_refused(path, answer, body, 405)

    async def test_an_unknown_model(self, gateway, path):
        answer, body = await ask(gateway, path, json={**GOOD, "model": "nobody/nothing"})
        assert_refused(path, answer, body, 404, "model")
        assert body["error"]["code"] == "model_not_found"

    async def test_a_missing_model(self, gateway, path):
        answer, body = await ask(gateway, path, json={"max_tokens": 1, "messages": HELLO})
        assert_refused(path, answer, body, 400, "model")

    async def test_no_messages(self, gateway, path):
        answer, body = await ask(gateway, path, json={**GOOD, "messages": []})
        assert_refused(path, answer, body, 400, "messages")

    async def test_only_empty_messages(self, gateway, path):
        empty = {**GOOD, "messages": [{"role": "user", "content": ""}]}
        answer, body = await ask(gateway, path, json=empty)
        assert_refused(path, answer, body, 400, "messages")

    async def test_a_wrong_type_deep_inside(self, gateway, path):
        messages = [*HELLO, {"role": "user", "content": [{"type": "text", "text": 7}]}]
        answer, body = await ask(gateway, path, json={**GOOD, "messages": messages})
        assert_refused(path, answer, body, 400, "messages[1].content[0].text")

    async def test_a_callers_request_id_comes_back(self, gateway, path):
        headers = {"x-request-id": "mine-1"}
        answer, _ = await ask(gateway, path, json=GOOD, headers=headers)
        assert answer.headers["x-request-id"] == "mine-1"

    @each_row("given", ["a b", "x" * 129, "é"])
    async def test_a_request_id_that_is_not_safe_does_not(self, gateway, path, given):
        answer, _ = await ask(gateway, path, json=GOOD, headers={"x-request-id": given})
        assert answer.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
class TestExtensions:
    @each_row(
        ("fields", "param"),
        [
            ({"memory_id": "a\nb"}, "memory_id"),
            ({"memory_config": {}}, "memory_id"),
            ({"memory_id": "m", "memory_config": {"turns": 5}}, "memory_config.turns"),
            (
                {"memory_id": "m", "memory_config": {"summary_window": 4}},
                "memory_config.summary_window",
            ),
        ],
    )
    async def test_a_wrong_word_about_memory(self, gateway, path, fields, param):
        answer, body = await ask(gateway, path, json={**GOOD, **fields})
        assert_refused(path, answer, body, 400, param)

    async def test_an_image_for_a_model_without_eyes(self, gateway, path):
        picture = "iVBORw0KGgo="
        part = (
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
            if path == CHAT
            else {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": picture},
            }
        )
        body = {**GOOD, "model": "sandbox/text", "messages": [{"role": "user", "content": [part]}]}
        blind = {**body, "multimodal": {"image": {"model": "sandbox/text"}}}
        answer, answer_body = await ask(gateway, path, json=blind)
        assert_refused(path, answer, answer_body, 400, "multimodal.image.model")
        passed = {**body, "multimodal": {"enabled": False}}
        answer, answer_body = await ask(gateway, path, json=passed)
        assert "does not read images" in assert_refused(path, answer, answer_body, 400)

    async def test_fallback_disabled_asks_the_model_alone(self, gateway, path):
        body = {**GOOD, "model": "with-fallback", "fallback": "disabled"}
        answer, _ = await ask(gateway, path, json=body)
        assert answer.status == 200

    @pytest.mark.parametrize("mode", ["auto", "disabled"])
    async def test_a_config_that_is_not_asked_for_is_not_read(self, gateway, path, mode):
        body = {**GOOD, "fallback": mode, "fallback_config": {"nonsense": []}}
        answer, _ = await ask(gateway, path, json=body)
        assert answer.status == 200


@each_row("stream", [False, True])
@each_row("provider", ["sandbox", "openai", "anthropic", "gemini"])
async def test_a_too_long_prompt_is_refused_with_both_numbers(gateway, provider, stream):
    messages = [{"role": "user", "content": "word " * 50_000}]
    body = {**GOOD, "model": f"{provider}/small", "messages": messages, "stream": stream}
    answer, answer_body = await ask(gateway, MESSAGES, json=body)
    assert_refused(MESSAGES, answer, answer_body, 400)
    assert answer_body["error"]["type"] == "invalid_request_error"
    # Coding agents look for these words, and compact the conversation.
    told_as = r"prompt is too long: \d{5} tokens > 40000 maximum"
    assert re.match(told_as, answer_body["error"]["message"])


@each_row("path", [CHAT, MESSAGES])
@each_row("stream", [False, True])
@each_row("provider", ["sandbox", "openai", "anthropic"])
@each_row(
    ("model", "status", "code"),
    [
        ("fail-429", 429, "upstream_rate_limited"),
        ("fail-500", 502, "upstream_error"),
        ("fail-401", 502, "upstream_auth"),
        ("fail-403", 502, "upstream_auth"),
        ("fail-529", 529, "upstream_overloaded"),
        ("fail-context", 400, "context_length_exceeded"),
    ],
)
async def test_a_provider_that_fails(gateway, path, stream, provider, model, status, code):
    body = {**GOOD, "model": f"{provider}/{model}", "stream": stream, "fallback": "disabled"}
    answer, answer_body = await ask(gateway, path, json=body)
    if path == CHAT and status == 529:
        status = 503
    assert_refused(path, answer, answer_body, status)
    error = answer_body["error"]
    assert error["code"] == code
    (attempt,) = error["attempts"]
    assert (attempt["step"], attempt["model"]) == ("primary", f"{provider}/{model}")
    if status in (429, 503, 529):
        assert int(answer.headers["Retry-After"]) >= 1


async def test_more_tokens_than_the_model_writes(gateway):
    for path in (CHAT, MESSAGES):
        answer, body = await ask(gateway, path, json={**GOOD, "model": "short"})
        assert "10" in assert_refused(path, answer, body, 400, "max_tokens")


async def test_fallback_fields_are_refused_below_coding(gateway):
    for field in ("fallback", "fallback_config"):
        body = {**GOOD, field: "auto" if field == "fallback" else {}}
        answer, answer_body = await ask(gateway, CODING, json=body)
        assert_refused(CODING, answer, answer_body, 400, field)


async def test_a_field_no_header_can_name_is_still_left_out(gateway):
    for path in (CHAT, MESSAGES):
        answer, _ = await ask(gateway, path, json={**GOOD, "\x1f\r\né": 1})
        assert answer.status == 200
        assert "%1F%0D%0A%C3%A9" in answer.headers["x-gateway-dropped"]


async def test_coding_needs_no_version(gateway):
    headers = {"x-api-key": gateway.key}
    answer, _ = await ask(gateway, CODING, json=GOOD, headers=headers)
    assert answer.status == 200


async def test_an_unknown_path_is_404_in_the_callers_shape(gateway):
    for headers, kind in ((gateway.bearer(), "A"), (gateway.api_key(), "B"), ({}, "A")):
        answer, body = await ask(gateway, "/beta/v1/nothing", "GET", headers=headers)
        assert answer.status == 404
        assert ("request_id" in body) == (kind == "B")
