"""Names of megabytes, which must be in no cache, no log and no answer."""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import aiohttp
import pytest

from tests.attacks.observer import Observer
from tests.e2e.gateway import Gateway

TIMES = 40
LONG = "x" * (2 << 20)
NUMBER = b"x" * 8  # of a name; each is another one
HELLO = [{"role": "user", "content": "Hello"}]
CHAT = {"model": "sandbox/echo", "messages": HELLO}
MESSAGES = {**CHAT, "max_tokens": 10}
FUNCTION = {"type": "function", "function": {"name": LONG}}
ENDPOINTS = {
    "chat": "/beta/v1/chat/completions",
    "messages": "/beta/v1/messages",
    "count_tokens": "/beta/v1/messages/count_tokens",
    "coding": "/coding/v1/messages",
}

# Of each: the endpoint, the body, and the field that its refusal names.
NAMES: dict[str, tuple[str, Mapping[str, Any], str]] = {
    "model of chat": ("chat", {**CHAT, "model": f"evil/{LONG}"}, "model"),
    "model of a provider": ("chat", {**CHAT, "model": f"openai/{LONG}"}, "model"),
    "model of messages": ("messages", {**MESSAGES, "model": f"evil/{LONG}"}, "model"),
    "model of a count": ("count_tokens", {**CHAT, "model": f"evil/{LONG}"}, "model"),
    "memory_id": ("chat", {**CHAT, "memory_id": LONG}, "memory_id"),
    "tool": ("chat", {**CHAT, "tools": [FUNCTION]}, "tools[0].function.name"),
    "tool_choice": (
        "chat",
        {**CHAT, "tool_choice": {"type": "function", "function": {"name": LONG}}},
        "tool_choice",
    ),
    "unknown field": ("chat", {**CHAT, "multimodal": {LONG: 1}}, "multimodal"),
    "key of a map": ("chat", {**CHAT, "logit_bias": {LONG: "no"}}, "logit_bias"),
    "step": (
        "coding",
        {**MESSAGES, "fallback": "strict", "fallback_config": {"steps": [{"step_id": LONG}]}},
        "fallback",
    ),
}


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("name", NAMES)
async def test_names_of_2_mb_are_refused_and_kept_nowhere(
    name: str, target: Gateway, attacker_key: str, observer: Observer
) -> None:
    endpoint, body, field = NAMES[name]
    sent = json.dumps(body).encode()
    logged = len(target.process.output)
    headers = {"x-api-key": attacker_key, "compat-version": "2023-06-01"}
    headers["Content-Type"] = "application/json"
    async with aiohttp.ClientSession() as http, observer.watch() as measured:
        for number in range(TIMES):
            numbered = BytesIO(sent.replace(NUMBER, b"%08d" % number, 1))
            async with http.post(
                target.address + ENDPOINTS[endpoint], data=numbered, headers=headers
            ) as response:
                answer = await response.read()
                assert response.status == 400, answer[:2000]
                error = json.loads(answer)["error"]
                assert error["param"].startswith(field)
                assert field in error["message"]
                assert len(answer) < 4_000
    # How many lines there are, the other caller's among them, says how long it took: maybe none.
    longest = max(map(len, target.process.output[logged:].splitlines()), default=0)
    assert longest < 2_000
    measured.assert_harmless()
