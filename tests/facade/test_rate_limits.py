"""Limits of keys, users and teams: what callers of each API see of them."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

import anthropic
import openai
import pytest
import pytest_asyncio

from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.common.settings import Storage
from services.inference.assembly import Inference
from services.inference.usage.lines import UsedModel
from services.media.conversion.pool import ConversionPool
from tests.grid import each_row
from tests.limited_callers import (
    CHAT,
    HELLO,
    MESSAGE,
    LimitedGateways,
    ask,
    limited_gateways,
    post,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNTS = "/beta/v1/messages/count_tokens"
PICTURE = {
    "media_type": "image/png",
    "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAA"
    "BJRU5ErkJggg==",
}
CHATS, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
RESPONSES, EMBEDDINGS = "/beta/v1/responses", "/beta/v1/embeddings"
RESPONSE = {"model": "sandbox/echo", "input": "Hello"}
EMBEDDING = {"model": "sandbox/embed", "input": "Hello"}
# Price of a token, in 10^-12 US dollars.
PRICE = 1_000_000


def _price(inference: Inference, used: UsedModel) -> int | None:
    if (used.provider, used.model) != ("sandbox", "sandbox/echo"):
        return None
    return PRICE * ((used.input_tokens or 0) + used.output_tokens)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def limited(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LimitedGateways]:
    """A gateway whose clock stands 20 s before the end of a minute."""
    folder = tmp_path_factory.mktemp("gateway")
    with patch.object(Inference, "cost_of", _price):
        async with limited_gateways(folder, Storage(data_dir=folder)) as one:
            yield one


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "body"), [(CHATS, CHAT), (RESPONSES, RESPONSE)])
async def test_openais_headers_tell_the_limits(
    limited: LimitedGateways, path: str, body: dict[str, Any], stream: bool
) -> None:
    limits = UsageLimits(requests_per_minute=2, tokens_per_minute=10**6)
    caller = await limited.caller(SubjectKind.USER, limits)
    seen = []
    for _ in range(3):
        status, _, headers = await ask(limited, path, {**body, "stream": stream}, caller)
        assert headers["x-ratelimit-limit-requests"] == "2"
        assert headers["x-ratelimit-reset-requests"] == "20s"
        assert headers["x-ratelimit-limit-tokens"] == "1000000"
        assert 0 < int(headers["x-ratelimit-remaining-tokens"]) < 10**6
        seen.append((status, headers["x-ratelimit-remaining-requests"]))
    assert seen == [(200, "1"), (200, "0"), (429, "0")]


@pytest.mark.parametrize("stream", [False, True])
async def test_anthropics_headers_tell_the_limits(limited: LimitedGateways, stream: bool) -> None:
    caller = await limited.caller(SubjectKind.USER, UsageLimits(requests_per_minute=1))
    seen = []
    for _ in range(2):
        status, _, headers = await ask(limited, MESSAGES, {**MESSAGE, "stream": stream}, caller)
        assert headers["anthropic-ratelimit-requests-limit"] == "1"
        assert headers["anthropic-ratelimit-requests-reset"] == "2023-11-14T22:15:00Z"
        assert "anthropic-ratelimit-tokens-limit" not in headers
        seen.append((status, headers["anthropic-ratelimit-requests-remaining"]))
    assert seen == [(200, "0"), (429, "0")]


async def test_counting_is_free_unless_it_converts_media(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.KEY, UsageLimits(requests_per_minute=1))
    helper = {"image": {"model": "sandbox/vision"}}
    plain = {"model": "sandbox/text", "messages": HELLO, "multimodal": helper}
    content = [{"type": "image", "source": {**PICTURE, "type": "base64"}}]
    with_picture = {**plain, "messages": [{"role": "user", "content": content}]}
    statuses = []
    for body in (plain, with_picture, plain, with_picture, plain):
        status, error, headers = await ask(limited, COUNTS, body, caller)
        statuses.append(status)
        if status == 429:
            assert "1 requests per minute, is reached" in error["message"]
            assert headers["Retry-After"] == "20"
    assert statuses == [200, 200, 200, 429, 200]
    # A model that reads pictures needs no conversion.
    seeing = {**with_picture, "model": "sandbox/vision"}
    assert (await ask(limited, COUNTS, seeing, caller))[0] == 200


@pytest.mark.parametrize(
    "limits", [UsageLimits(tokens_per_minute=0), UsageLimits(concurrent_requests=0)]
)
async def test_who_may_send_nothing_gets_nothing_converted(
    limited: LimitedGateways, limits: UsageLimits
) -> None:
    caller = await limited.caller(SubjectKind.USER, limits)
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}
    content = [{"type": "document", "source": source}]
    body = {"model": "sandbox/text", "messages": [{"role": "user", "content": content}]}
    with patch.object(ConversionPool, "run", side_effect=AssertionError("converted")):
        assert (await ask(limited, COUNTS, body, caller))[0] == 429


async def test_a_count_holds_its_slot_while_it_converts(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.USER, UsageLimits(concurrent_requests=1))
    content = [{"type": "image", "source": {**PICTURE, "type": "base64"}}]
    helper = {"image": {"model": "sandbox/vision"}}
    messages = [{"role": "user", "content": content}]
    body = {"model": "sandbox/text", "messages": messages, "multimodal": helper}
    for _ in range(2):  # the slot is returned
        assert (await ask(limited, COUNTS, body, caller))[0] == 200


async def test_embeddings_are_limited_too(limited: LimitedGateways) -> None:
    limits = UsageLimits(requests_per_minute=2, tokens_per_minute=100_000)
    caller = await limited.caller(SubjectKind.KEY, limits)
    for left in "10":
        status, _, headers = await ask(limited, EMBEDDINGS, EMBEDDING, caller)
        assert (status, headers["x-ratelimit-remaining-requests"]) == (200, left)
        assert int(headers["x-ratelimit-remaining-tokens"]) > 99_900
    assert (await ask(limited, EMBEDDINGS, EMBEDDING, caller))[0] == 429


async def test_a_refusal_names_the_limit_in_openais_shape(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.TEAM, UsageLimits(requests_per_minute=0))
    status, error, headers = await ask(limited, CHATS, CHAT, caller)
    assert (status, headers["Retry-After"]) == (429, "20")
    assert error == {
        "message": "the limit of the team, 0 requests per minute, is reached; try again in 20 s",
        "type": "rate_limit_error",
        "param": None,
        "code": "rate_limited",
    }


async def test_a_refusal_names_the_limit_in_anthropics_shape(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.KEY, UsageLimits(tokens_per_minute=3))
    # One request may exceed the limit.
    assert (await ask(limited, MESSAGES, MESSAGE, caller))[0] == 200
    status, error, headers = await ask(limited, MESSAGES, MESSAGE, caller)
    assert (status, headers["Retry-After"]) == (429, "20")
    assert error["type"] == "rate_limit_error"
    assert error["message"] == (
        "the limit of the API key, 3 tokens per minute, is reached; try again in 20 s"
    )


async def test_tokens_are_settled_by_the_usage_of_answers(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.USER, UsageLimits(tokens_per_minute=10_000))
    used = 0
    for number in range(4):
        body = {**CHAT, "stream": number % 2 == 1, "stream_options": {"include_usage": True}}
        body["max_tokens"] = 300
        if not body["stream"]:
            del body["stream_options"]
        status, data, headers = await post(limited.gateways[0], CHATS, body, caller)
        assert status == 200
        taken = 10_000 - used - int(headers["x-ratelimit-remaining-tokens"])
        used += _tokens(data)
        if body["stream"]:
            # So many are reserved for an answer that has only begun.
            assert 300 < taken < 500
        else:
            assert taken == _tokens(data)


def _tokens(data: bytes) -> int:
    """Return the tokens that an answer says it took, whole or streamed."""
    if data.startswith(b"{"):
        return int(json.loads(data)["usage"]["total_tokens"])
    lines = [line for line in data.decode().splitlines() if '"total_tokens"' in line]
    return int(json.loads(lines[-1].removeprefix("data: "))["usage"]["total_tokens"])


@pytest.mark.parametrize("body", [{"model": "sandbox/nobody", "messages": HELLO}])
async def test_a_request_that_fails_gives_its_tokens_back(
    limited: LimitedGateways, body: Any
) -> None:
    caller = await limited.caller(SubjectKind.USER, UsageLimits(tokens_per_minute=100))
    for _ in range(20):
        assert (await ask(limited, CHATS, body, caller))[0] == 404
    assert (await ask(limited, CHATS, CHAT, caller))[0] == 200


@pytest.mark.parametrize(
    "limits",
    [UsageLimits(spend_per_day_pusd=60 * PRICE), UsageLimits(spend_per_month_pusd=60 * PRICE)],
)
async def test_a_spent_budget_is_refused_in_each_shape(
    limited: LimitedGateways, limits: UsageLimits
) -> None:
    caller = await limited.caller(SubjectKind.TEAM, limits)
    spent = 0
    while spent < 60:
        status, data, _ = await post(limited.gateways[0], CHATS, CHAT, caller)
        assert status == 200
        spent += _tokens(data)
    status, error, headers = await ask(limited, CHATS, CHAT, caller)
    is_day = limits.spend_per_day_pusd is not None
    span, until = ("day", "2023-11-15") if is_day else ("month", "2023-12-01")
    assert status == 429
    assert error == {
        "message": f"the team has spent its budget of 0.00006 US dollars a {span}; "
        f"the next budget starts on {until} at 00:00 UTC",
        "type": "insufficient_quota",
        "param": None,
        "code": "insufficient_quota",
    }
    assert headers["x-should-retry"] == "false"
    assert int(headers["Retry-After"]) > 6_000
    status, error, _ = await ask(limited, MESSAGES, MESSAGE, caller)
    assert (status, error["type"], error["code"]) == (402, "billing_error", "budget_exceeded")


async def test_the_sdks_know_the_refusals(limited: LimitedGateways) -> None:
    caller = await limited.caller(
        SubjectKind.USER, UsageLimits(requests_per_minute=0, allowed_models=("sandbox/*",))
    )
    key, url = caller["Authorization"].removeprefix("Bearer "), limited.gateways[0].url
    async with openai.AsyncOpenAI(api_key=key, base_url=f"{url}/beta/v1", max_retries=0) as client:
        with pytest.raises(openai.RateLimitError) as of_openai:
            await client.chat.completions.create(**CHAT)
        assert of_openai.value.code == "rate_limited"
        with pytest.raises(openai.PermissionDeniedError):
            await client.chat.completions.create(model="gpt-4o", messages=HELLO)
        assert {one.id.split("/")[0] async for one in client.models.list()} == {"sandbox"}
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-4o")
    async with anthropic.AsyncAnthropic(
        api_key=key, base_url=f"{url}/beta", max_retries=0
    ) as client:
        with pytest.raises(anthropic.RateLimitError):
            await client.messages.create(**MESSAGE)


@each_row(
    ("path", "body", "param"),
    [
        (CHATS, {**CHAT, "model": "sandbox/vision"}, "model"),
        (CHATS, {**CHAT, "model": "nobody/knows"}, "model"),
        (RESPONSES, {**RESPONSE, "model": "gpt-4o"}, "model"),
        (EMBEDDINGS, EMBEDDING, "model"),
        (MESSAGES, {**MESSAGE, "model": "claude-x"}, "model"),
        (f"{MESSAGES}/count_tokens", {**CHAT, "model": "claude-x"}, "model"),
        (
            CHATS,
            {
                **CHAT,
                "fallback": "enabled",
                "fallback_config": {
                    "strategy": {"mode": "sequential"},
                    "steps": [{"step_id": "a", "model": "sandbox/vision"}],
                },
            },
            "fallback_config.steps[0].model",
        ),
        (
            CHATS,
            {**CHAT, "multimodal": {"image": {"model": "sandbox/vision"}}},
            "multimodal.image.model",
        ),
    ],
)
async def test_a_model_that_is_not_allowed_is_refused(
    limited: LimitedGateways, path: str, body: Any, param: str
) -> None:
    caller = await limited.caller(
        SubjectKind.KEY, UsageLimits(allowed_models=("sandbox/ec*", "auto"))
    )
    status, error, _ = await ask(limited, path, body, caller)
    assert (status, error["type"], error["code"]) == (403, "permission_error", "permission_denied")
    assert error["param"] == param
    assert error["message"].startswith(f"{param}: the API key may not use the model ")


async def test_allowed_models_of_all_subjects_count(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.KEY, UsageLimits(allowed_models=("sandbox/ec*",)))
    assert (await ask(limited, CHATS, CHAT, caller))[0] == 200
    nothing = await limited.caller(SubjectKind.TEAM, UsageLimits(allowed_models=()))
    assert (await ask(limited, CHATS, CHAT, nothing))[0] == 403
    models = f"{limited.gateways[0].url}/beta/v1/models"
    async with limited.gateways[0].http.get(models, headers=nothing) as answer:
        assert (await answer.json())["data"] == []


async def test_a_failed_background_response_tells_of_the_limit(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.USER, UsageLimits(requests_per_minute=0))
    body = {**RESPONSE, "background": True}
    status, data, _ = await post(limited.gateways[0], RESPONSES, body, caller)
    assert status == 200
    path = f"{limited.gateways[0].url}{RESPONSES}/{json.loads(data)['id']}"
    async with asyncio.timeout(20):
        while True:
            async with limited.gateways[0].http.get(path, headers=caller) as answer:
                stored = await answer.json()
            if stored["status"] not in ("queued", "in_progress"):
                break
    assert stored["status"] == "failed"
    assert stored["error"]["code"] == "rate_limit_exceeded"


async def test_limits_that_are_reached_are_counted(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.TEAM, UsageLimits(concurrent_requests=0))
    counters = limited.gateways[0].counters
    name, labels = "gateway_limits_reached_total", {"limit": "team.concurrent_requests"}
    status, error, headers = await ask(limited, CHATS, CHAT, caller)
    assert (status, headers["Retry-After"]) == (429, "1")
    assert (
        error["message"]
        == "the limit of the team, 0 concurrent requests, is reached; try again in 1 s"
    )
    assert counters.get_sample_value(name, labels) == 1
    assert counters.get_sample_value("gateway_limit_leases_total", {"outcome": "answered"}) > 0
