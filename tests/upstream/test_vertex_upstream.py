"""The upstream's Vertex AI is what the vendors' own clients expect, and as strict as Google's."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from anthropic import AsyncAnthropicVertex
from google.auth.credentials import Credentials

from tests.gateway_in_process import serving
from tests.upstream.app import create_app
from tests.upstream.vertex.tokens import Tokens

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # Of google-genai's import.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession"),
]
ANSWER = 'Sandbox echo: you said "Hello".'
LOCATION = "/v1/projects/p/locations/global"


class Issued(Credentials):
    """Credentials of google-auth with a token of the upstream."""

    def __init__(self, token: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # google-auth has no types here
        self.token = token

    def refresh(self, request: Any) -> None:
        raise AssertionError("not renewed")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[tuple[str, Tokens]]:
    tokens = Tokens()
    async with serving(create_app(tokens=tokens)) as url:
        yield url, tokens


async def test_googles_own_client(upstream: tuple[str, Tokens]):
    from google.genai import Client, types

    url, tokens = upstream
    client = Client(
        vertexai=True,
        project="p",
        location="global",
        credentials=Issued(tokens.issue("t")),
        http_options=types.HttpOptions(base_url=url, api_version="v1"),
    )
    models = client.aio.models
    model = "gemini-echo"
    whole = await models.generate_content(model=model, contents="Hello")
    assert whole.text == ANSWER
    pieces = [
        one.text
        async for one in await models.generate_content_stream(model=model, contents="Hello")
    ]
    assert "".join(piece or "" for piece in pieces) == ANSWER
    assert (await models.count_tokens(model=model, contents="Hello")).total_tokens
    for name, texts in (
        ("embed", ["a", "b"]),
        ("gemini-embed", ["a"]),
        ("gemini-embed", ["a", "b"]),
    ):
        contents: Any = list(texts)
        if name != "embed":  # else its client takes several texts for parts of one
            contents = [types.Content(parts=[types.Part(text=text)]) for text in texts]
        config = types.EmbedContentConfig(output_dimensionality=8)
        made = await models.embed_content(model=name, contents=contents, config=config)
        assert [len(one.values or ()) for one in made.embeddings or ()] == [8] * len(texts)
    await client.aio.aclose()


async def test_anthropics_own_client(upstream: tuple[str, Tokens]):
    url, tokens = upstream
    async with AsyncAnthropicVertex(
        region="global", project_id="p", access_token=tokens.issue("t"), base_url=f"{url}/v1"
    ) as client:
        fields: Any = {
            "model": "claude-echo@20250929",
            "messages": [{"role": "user", "content": "Hello"}],
        }
        whole = await client.messages.create(max_tokens=100, **fields)
        assert whole.content[0].to_dict()["text"] == ANSWER
        async with client.messages.stream(max_tokens=100, **fields) as stream:
            assert await stream.get_final_text() == ANSWER
        assert (await client.messages.count_tokens(**fields)).input_tokens


CONTENTS = [{"role": "user", "parts": [{"text": "Hello"}]}]
MESSAGES = {
    **{"anthropic_version": "vertex-2023-10-16", "max_tokens": 10},
    "messages": [{"role": "user", "content": "Hello"}],
}
REFUSED: list[tuple[str, dict[str, Any], int]] = [
    ("google/models/gemini-echo:generateContent", {"contents": CONTENTS, "model": "x"}, 400),
    ("google/models/gemini-echo:generateContent", {"contents": [{"text": "x"}]}, 400),
    ("google/models/gemini-echo:countTokens", {"generateContentRequest": {}}, 400),
    ("google/models/embed:predict", {"instances": [{"text": "x"}]}, 400),
    ("anthropic/models/claude-echo:rawPredict", {**MESSAGES, "model": "claude-echo"}, 400),
    ("anthropic/models/claude-echo:rawPredict", {**MESSAGES, "stream": True}, 400),
    ("anthropic/models/claude-echo:rawPredict", {**MESSAGES, "anthropic_version": "1"}, 400),
    ("anthropic/models/claude-echo:rawPredict", MESSAGES, 200),
]


async def test_what_is_refused(upstream: tuple[str, Tokens]):
    url, tokens = upstream
    failures = []
    async with aiohttp.ClientSession() as http:
        for path, body, expected in REFUSED:
            full = f"{url}{LOCATION}/publishers/{path}"
            for token, status in ((tokens.issue("t"), expected), ("expired", 401)):
                headers = {"Authorization": f"Bearer {token}"}
                async with http.post(full, json=body, headers=headers) as response:
                    if response.status != status and not (status == 401 and expected == 400):
                        failures.append((path, body, response.status, await response.text()))
    assert not failures
