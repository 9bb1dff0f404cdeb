"""Counts of the input tokens of requests for responses, with OpenAI's client."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio
from aiohttp import web

from tests.facade.conversations import WEATHER
from tests.gateway_in_process import running_gateway, serving
from tests.upstream.app import create_app

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOOL = {"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": False}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[openai.AsyncOpenAI]:
    async with serving(create_app()) as url, serving(web.Application()) as without:
        addresses = {
            "openai": {"kind": "openai", "base_url": f"{url}/v1", "responses": True},
            "chats": {"kind": "openai", "base_url": f"{url}/v1"},
            "broken": {"kind": "openai", "base_url": f"{without}/v1", "responses": True},
            "anthropic": {"kind": "anthropic", "base_url": url},
        }
        providers = {name: {**one, "api_key": "k"} for name, one in addresses.items()}
        folder = tmp_path_factory.mktemp("gateway")
        async with (
            running_gateway(folder, url, providers=providers) as gateway,
            openai.AsyncOpenAI(
                api_key=gateway.key, base_url=f"{gateway.url}/v1", max_retries=0
            ) as one,
        ):
            yield one


@pytest.mark.parametrize(
    ("model", "is_estimate"),
    [
        ("openai/echo", False),
        ("anthropic/echo", False),
        ("sandbox/echo", False),
        ("chats/echo", True),
        ("broken/echo", True),
    ],
)
async def test_the_count_is_the_providers_or_an_estimate(
    client: openai.AsyncOpenAI, model: str, is_estimate: bool
) -> None:
    request: Any = {
        "model": model,
        "input": "Hi",
        "instructions": "Be brief.",
        "tools": [TOOL],
        "reasoning": {"effort": "low"},
        "text": {"verbosity": "low"},
    }
    counted = await client.responses.input_tokens.with_raw_response.count(**request)
    body = counted.parse()
    assert body.object == "response.input_tokens"
    assert ("x-gateway-estimate" in counted.headers) == is_estimate
    if not is_estimate:
        answer = await client.responses.create(**request, store=False)
        assert answer.usage is not None
        assert body.input_tokens == answer.usage.input_tokens
    assert body.input_tokens > 5


async def test_what_the_input_continues_is_counted(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="openai/echo", input="A long question. " * 50)
    count = client.responses.input_tokens.count
    for model in ("openai/echo", "anthropic/echo"):
        alone = await count(model=model, input="And?")
        after = await count(model=model, input="And?", previous_response_id=first.id)
        assert after.input_tokens > alone.input_tokens + 100
    with pytest.raises(openai.BadRequestError, match="resp_unknown"):
        await count(model=model, input="And?", previous_response_id="resp_unknown")
    with pytest.raises(openai.BadRequestError, match="input: is required"):
        await count(model=model)
