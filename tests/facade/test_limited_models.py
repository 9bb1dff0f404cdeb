"""Further models in requests of callers with limits on models or spend."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.common.settings import Storage
from tests.limited_callers import CHAT, HELLO, MESSAGE, LimitedGateways, ask, limited_gateways

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHATS, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
RESPONSES = "/beta/v1/responses"
RESPONSE = {"model": "sandbox/echo", "input": "Hello"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def limited(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LimitedGateways]:
    folder = tmp_path_factory.mktemp("gateway")
    async with limited_gateways(folder, Storage(data_dir=folder)) as one:
        yield one


def _dated(**fields: Any) -> dict[str, Any]:
    return {"messages": HELLO, "max_tokens": 9, "model": "claude-a", **fields}


IMAGES = {"type": "image_generation", "model": "gpt-image-9"}
# Bodies with steps in a field of the dialect, each with the path of one.
CHAINS = [
    (MESSAGES, {**MESSAGE, "fallbacks": [{"model": "claude-z"}]}, "fallbacks[0].model"),
    (CHATS, {**CHAT, "models": ["sandbox/text", "gpt-9"]}, "models[1]"),
]
# Bodies that name further models, each with the path of one and whether its place is known.
FURTHER = [
    (
        MESSAGES,
        _dated(fallbacks=[{"model": "claude-z"}], fallback="disabled"),
        "fallbacks[0].model",
        True,
    ),
    (MESSAGES, _dated(fallbacks="default"), "fallbacks", False),
    (
        MESSAGES,
        _dated(tools=[{"type": "advisor_1", "name": "advisor", "model": "claude-z"}]),
        "tools[0].model",
        True,
    ),
    (
        MESSAGES,
        _dated(output_config={"judge_model": "claude-z"}),
        "output_config.judge_model",
        False,
    ),
    (CHATS, {**CHAT, "models": ["gpt-9"], "fallback": "disabled"}, "models[0]", True),
    (CHATS, {**CHAT, "plugins": [{"id": "p", "model": "gpt-9"}]}, "plugins[0].model", False),
    (CHATS, {**CHAT, "brandNewModel": "gpt-9"}, "brandNewModel", False),
    (RESPONSES, {**RESPONSE, "tools": [IMAGES]}, "tools[0].model", True),
    (
        RESPONSES,
        {**RESPONSE, "tools": [{**IMAGES, "model": None, "svg": IMAGES}]},
        "tools[0].svg.model",
        True,
    ),
    (
        RESPONSES,
        {**RESPONSE, "input": [*HELLO, {"type": "additional_tools", "tools": [IMAGES]}]},
        "input[1].tools[0].model",
        True,
    ),
]
NAMES = ("sandbox/*", "claude-a")
OVERRIDDEN = {
    **CHAT,
    "fallback": "enabled",
    "fallback_config": {
        "strategy": {"mode": "sequential"},
        "steps": [
            {"step_id": "a", "model": "sandbox/echo", "parameters": {"models": ["gpt-9"]}},
        ],
    },
}


@pytest.mark.parametrize("stream", [False, True])
async def test_further_models_are_checked_too(limited: LimitedGateways, stream: bool) -> None:
    few = await limited.caller(SubjectKind.KEY, UsageLimits(allowed_models=NAMES))
    path = "fallback_config.steps[0].parameters.models[0]"
    wrong = []
    for url, body, param, is_known in [*FURTHER, (CHATS, OVERRIDDEN, path, True)]:
        status, error, _ = await ask(limited, url, {**body, "stream": stream}, few)
        says = "the API key may not use the model" if is_known else "names a further model"
        if status != 403 or not error["message"].startswith(f"{param}: {says}"):
            wrong.append((param, status, error))
    assert wrong == []


@pytest.mark.parametrize("stream", [False, True])
async def test_steps_of_the_dialect_must_be_allowed(limited: LimitedGateways, stream: bool) -> None:
    few = await limited.caller(SubjectKind.KEY, UsageLimits(allowed_models=NAMES))
    for url, body, param in CHAINS:
        status, error, _ = await ask(limited, url, {**body, "stream": stream}, few)
        assert (status, error["param"]) == (403, param)
        assert error["message"].startswith(f"{param}: the API key may not use the model")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_budget_needs_the_prices_of_all_steps(
    limited: LimitedGateways, stream: bool
) -> None:
    caller = await limited.caller(SubjectKind.USER, UsageLimits(spend_per_day_pusd=10**15))
    for url, body, param in CHAINS:
        status, error, _ = await ask(limited, url, {**body, "stream": stream}, caller)
        assert (status, error["code"], error["param"]) == (403, "permission_denied", param)
        assert "has a budget, and the price of" in error["message"]
    priced = {**MESSAGE, "fallbacks": [{"model": "sandbox/text", "max_tokens": 9}]}
    assert (await ask(limited, MESSAGES, {**priced, "stream": stream}, caller))[0] == 200


async def test_further_models_of_the_list_are_allowed(limited: LimitedGateways) -> None:
    caller = await limited.caller(
        SubjectKind.KEY, UsageLimits(allowed_models=(*NAMES, "gpt-9", "claude-z", "gpt-image-9"))
    )
    for url, body, param, is_known in FURTHER:
        status, error, _ = await ask(limited, url, body, caller)
        if is_known:
            assert status != 403, (param, error)
        else:
            assert status == 403, param


@pytest.mark.parametrize("stream", [False, True])
async def test_under_a_budget_no_further_models_are_named(
    limited: LimitedGateways, stream: bool
) -> None:
    caller = await limited.caller(SubjectKind.USER, UsageLimits(spend_per_day_pusd=10**15))
    wrong = []
    for url, body, param, _ in FURTHER:
        status, error, _ = await ask(limited, url, {**body, "stream": stream}, caller)
        if status != 403 or not error["message"].startswith(f"{param}: names a further model"):
            wrong.append((param, status, error))
    assert wrong == []
    free = {**CHAT, "moderation": {"model": "omni-moderation"}, "metadata": {"model": "gpt-9"}}
    assert (await ask(limited, CHATS, free, caller))[0] == 200


async def test_without_limits_further_models_may_be_named(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.USER, UsageLimits(requests_per_minute=99))
    for url, body, _, _ in FURTHER:
        status, error, _ = await ask(limited, url, body, caller)
        assert status != 403, error


async def test_a_request_names_a_bounded_number_of_models(limited: LimitedGateways) -> None:
    caller = await limited.caller(SubjectKind.KEY, UsageLimits(allowed_models=("*",)))
    rows = [
        ("enabled", 16, 200),
        ("enabled", 17, 400),
        ("disabled", 64, 200),
        ("disabled", 65, 403),
    ]
    for fallback, count, expected in rows:
        body: dict[str, Any] = {**CHAT, "models": ["sandbox/text"] * count}
        body |= {"fallback": "disabled"} if fallback == "disabled" else {}
        status, error, _ = await ask(limited, CHATS, body, caller)
        assert status == expected, (fallback, count, error)
        if status == 400:
            assert error["param"] == "models"
