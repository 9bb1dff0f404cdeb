"""Budgets in refusals, in response headers, and in GET /beta/v1/usage/me."""

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.common.settings import Storage
from tests.limited_callers import CHAT, HELLO, LimitedGateways, limited_gateways, post
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHATS, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
ME = "/beta/v1/usage/me"
DOLLAR = 10**12
# A token costs a cent.
PRICED = {"input": 10_000, "output": 10_000}
MODELS = [{"name": "priced", "provider": "sandbox", "upstream": "echo", "price": PRICED}]
MESSAGE = {"model": "claude-x", "max_tokens": 5, "messages": HELLO}
VERSION = {"compat-version": "2023-06-01"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def limited(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LimitedGateways]:
    folder = tmp_path_factory.mktemp("gateway")
    storage = Storage(data_dir=folder)
    usage = {"write_every_s": 0.05}
    limits = {"lease_every_s": 0.05}
    async with limited_gateways(folder, storage, models=MODELS, usage=usage, limits=limits) as one:
        yield one


async def me(limited: LimitedGateways, headers: dict[str, str], path: str = ME) -> Any:
    [gateway] = limited.gateways
    async with gateway.http.get(gateway.url + path, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_left_agrees_with_what_was_used(
    limited: LimitedGateways, stream: bool
) -> None:
    limits = UsageLimits(
        spend_per_day_pusd=100 * DOLLAR,
        spend_per_month_pusd=1_000 * DOLLAR,
        tokens_per_minute=10**6,
        concurrent_requests=5,
        allowed_models=("priced",),
    )
    caller = await limited.caller(SubjectKind.USER, limits)
    body = {**CHAT, "model": "priced", "max_tokens": 50, "stream": stream}
    remaining = []
    for _ in range(3):
        status, _, headers = await post(limited.gateways[0], CHATS, body, caller)
        assert status == 200
        assert headers["x-gateway-budget-reset"] == "2023-11-15T00:00:00Z"
        remaining.append(Decimal(headers["x-gateway-budget-remaining-usd"]))
    assert 100 > remaining[0] > remaining[1] > remaining[2] > 90

    async def agrees() -> bool:
        told = await me(limited, caller)
        states = {one["name"]: one for one in told["limits"]}
        day = states["spend_per_day"]
        used = told["usage"]["day"]
        return (
            used["requests"] == 3
            and 0 < Decimal(used["cost"]) == Decimal(day["used"])
            and Decimal(day["used"]) + Decimal(day["remaining"]) == 100
            and day["used"] == states["spend_per_month"]["used"] == told["usage"]["month"]["cost"]
            and states["tokens_per_minute"]["used"]
            == used["input_tokens"] + used["output_tokens"]
            == int(100 * Decimal(day["used"]))
            and {one["reserved"] for one in states.values()} <= {0, "0"}
        )

    await until(agrees)
    told = await me(limited, caller)
    assert told["object"] == "caller_usage"
    assert told["allowed_models"] == [{"subject_kind": "user", "models": ["priced"]}]
    assert told["usage"]["month"]["period"] == "2023-11"
    slots = next(one for one in told["limits"] if one["name"] == "concurrent_requests")
    assert (slots["limit"], slots["used"], slots["resets_at"]) == (5, 0, None)


async def test_nobody_else_is_shown(limited: LimitedGateways) -> None:
    budget = UsageLimits(spend_per_day_pusd=100 * DOLLAR)
    one, other = [await limited.caller(SubjectKind.KEY, budget) for _ in range(2)]
    body = {**CHAT, "model": "priced", "max_tokens": 50}
    assert (await post(limited.gateways[0], CHATS, body, one))[0] == 200

    async def is_recorded() -> bool:
        return (await me(limited, one))["usage"]["day"]["requests"] == 1

    await until(is_recorded)
    told = await me(limited, other)
    assert (told["usage"]["day"]["requests"], told["limits"][0]["used"]) == (0, "0")


async def test_a_caller_without_limits_has_usage(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.USER, UsageLimits())
    for path in (ME, "/v1/usage/me"):
        told = await me(limited, caller, path)
        assert (told["limits"], told["usage"]["day"]["cost"]) == ([], "0")
    key = {"x-api-key": caller["Authorization"].removeprefix("Bearer "), **VERSION}
    assert (await me(limited, key))["type"] == "caller_usage"


async def test_without_a_key_nothing_is_told(limited: LimitedGateways) -> None:
    [gateway] = limited.gateways
    async with gateway.http.get(gateway.url + ME) as answer:
        assert answer.status == 401


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHATS, {**CHAT, "model": "gpt-4o", "service_tier": "priority"}, "service_tier"),
        (CHATS, {**CHAT, "model": "gpt-unheard-of"}, "model"),
        (MESSAGES, {**MESSAGE, "speed": "fast"}, "speed"),
        (
            MESSAGES,
            {**MESSAGE, "tools": [{"type": "code_execution_20250825", "name": "code_execution"}]},
            "tools[0]",
        ),
    ],
)
async def test_what_has_no_known_price_is_refused_under_a_budget(
    limited: LimitedGateways, path: str, body: dict[str, Any], param: str
) -> None:
    budget = UsageLimits(spend_per_month_pusd=100 * DOLLAR)
    caller = {**VERSION, **await limited.caller(SubjectKind.TEAM, budget)}
    status, data, _ = await post(limited.gateways[0], path, body, caller)
    error = json.loads(data)["error"]
    assert (status, error["type"], error["param"]) == (403, "permission_error", param)
    assert error["message"].startswith(f"{param}: the caller has a budget, and ")
