"""Histograms of streams and attempts, as /metrics shows them."""

import re

import pytest

from tests.gateway_in_process import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"


async def counts(gateway: Gateway, name: str) -> dict[str, float]:
    """Return how often a histogram has observed, by its labels."""
    async with gateway.http.get(f"{gateway.metrics_url}/metrics") as answer:
        text = await answer.text()
    return {
        labels: float(value)
        for labels, value in re.findall(rf"^{name}_count(\S*) (\S+)$", text, re.MULTILINE)
    }


async def ask(gateway: Gateway, path: str, model: str, *, stream: bool) -> None:
    body = {
        "model": model,
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "Say some words."}],
        "stream": stream,
        "fallback": "disabled",
    }
    headers = gateway.bearer() | {"anthropic-version": "x"}
    async with gateway.http.post(gateway.url + path, json=body, headers=headers) as answer:
        await answer.read()


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
async def test_a_stream_is_timed_and_a_whole_answer_is_not(gateway, path, provider):
    names = ("gateway_first_content_seconds", "gateway_output_token_seconds")
    label = f'{{provider="{provider}"}}'
    before = [(await counts(gateway, name)).get(label, 0) for name in names]
    await ask(gateway, path, f"{provider}/echo", stream=False)
    await ask(gateway, path, f"{provider}/echo", stream=True)
    after = [(await counts(gateway, name)).get(label, 0) for name in names]
    assert after == [one + 1 for one in before]


async def test_a_stream_without_content_is_not_timed(gateway):
    before = await counts(gateway, "gateway_first_content_seconds")
    await ask(gateway, CHAT, "openai/fail-500", stream=True)
    assert await counts(gateway, "gateway_first_content_seconds") == before


async def test_attempts_are_timed_by_outcome(gateway):
    name = "gateway_upstream_attempt_seconds"
    label = '{outcome="failed",provider="openai"}'
    before = (await counts(gateway, name)).get(label, 0)
    await ask(gateway, CHAT, "openai/fail-500", stream=False)
    assert (await counts(gateway, name))[label] == before + 1
