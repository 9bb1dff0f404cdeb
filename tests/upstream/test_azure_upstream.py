"""The upstream's Azure is what the vendors' own clients expect."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from anthropic import AsyncAnthropicFoundry
from openai import AsyncAzureOpenAI, AuthenticationError

from tests.gateway_in_process import serving
from tests.upstream.app import create_app
from tests.upstream.azure_paths import API_VERSION, KEY

pytestmark = pytest.mark.asyncio(loop_scope="module")
QUESTION: Any = [{"role": "user", "content": "Hello"}]
ANSWER = 'Sandbox echo: you said "Hello".'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url() -> AsyncIterator[str]:
    async with serving(create_app()) as address:
        yield address


async def test_openais_own_client(url: str):
    place = {"azure_endpoint": url, "api_version": API_VERSION}
    async with AsyncAzureOpenAI(api_key=KEY, **place) as client:
        whole = await client.chat.completions.create(model="echo", messages=QUESTION)
        assert whole.choices[0].message.content == ANSWER
        made = await client.embeddings.create(model="embed", input="one", dimensions=8)
        assert len(made.data[0].embedding) == 8
    async with AsyncAzureOpenAI(api_key="wrong", max_retries=0, **place) as client:
        with pytest.raises(AuthenticationError):
            await client.chat.completions.create(model="echo", messages=QUESTION)


async def test_anthropics_own_client(url: str):
    async with AsyncAnthropicFoundry(api_key=KEY, base_url=f"{url}/anthropic") as client:
        made = await client.messages.create(model="echo", max_tokens=100, messages=QUESTION)
    assert made.content[0].to_dict()["text"] == ANSWER
