"""The server of `gateway sandbox`: requests of each API, and bodies that it cannot read."""

import copy
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import openai
import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer

from services.sandbox.server import create_app
from tests.services.sandbox.bodies import EXAMPLES, Example

HEADERS = {
    "authorization": "Bearer any",
    "anthropic-version": "2023-06-01",
    "x-goog-api-key": "any",
}
HI = [{"role": "user", "content": "hi"}]
ANSWER = 'Sandbox echo: you said "hi".'
# In place of each value of a valid body.
WRONG_VALUES: tuple[Any, ...] = (None, -1, 10**12, "x", [], ["x"], {"x": 1})


@pytest.fixture
async def client() -> AsyncIterator[TestClient[Any, Any]]:
    async with TestClient(TestServer(create_app())) as made:
        yield made


def paths_in(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each value below a JSON value."""
    assert isinstance(value, dict | list)
    entries: Iterable[tuple[str | int, object]]
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in entries:
        yield (*path, key)
        if isinstance(child, dict | list):
            yield from paths_in(child, (*path, key))


def changed_bodies(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield copies of a body, each with one value removed or replaced."""
    for path in paths_in(body):
        for value in (..., *WRONG_VALUES):
            changed = copy.deepcopy(body)
            parent: Any = changed
            for key in path[:-1]:
                parent = parent[key]
            if value is ...:
                del parent[path[-1]]
            else:
                parent[path[-1]] = value
            yield changed


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.path for example in EXAMPLES])
async def test_no_body_makes_the_server_fail(client: TestClient[Any, Any], example: Example):
    async def post(body: dict[str, Any]) -> tuple[int, Any]:
        async with client.post(example.path, json=body, headers=HEADERS) as response:
            return response.status, await response.read()

    status, text = await post(example.body)
    assert status == 200, text
    failures = []
    for body in changed_bodies(example.body):
        status, text = await post(body)
        is_answer = status == 200 or (status in (400, 404) and orjson.loads(text)["error"])
        if not is_answer:
            failures.append((status, orjson.dumps(body)))
    assert failures == []


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/chat/completions", {"model": "echo"}, "Invalid 'messages': this field is required"),
        (
            "/v1/chat/completions",
            {"model": "echo", "messages": [{"role": "user", "content": 5}]},
            "Invalid 'messages[0].content': Expected `str | array | null`, got `int`",
        ),
        (
            "/v1/chat/completions",
            {"model": "echo", "messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "The field `text` is required",
        ),
        ("/v1/chat/completions", {"messages": HI, "model": "echo", "n": 129}, "Invalid 'n': "),
        ("/v1/responses", {"model": "echo", "input": []}, "Invalid 'input': "),
        ("/v1/embeddings", {"model": "embed", "input": [1.5]}, "Invalid 'input[0]': "),
        (
            "/v1/messages",
            {"model": "echo", "messages": [{"content": "hi"}]},
            "messages.0.role: this field is required",
        ),
        (
            "/v1beta/models/echo:generateContent",
            {"contents": [{"parts": [{"text": 1}]}]},
            "Expected `str | null`, got `int`",
        ),
    ],
)
async def test_a_wrong_field_is_named(client, path, body, field):
    async with client.post(path, json=body, headers=HEADERS) as response:
        error = (await response.json())["error"]
    assert response.status == 400
    assert error["message"].startswith(field)


async def test_fields_that_models_do_not_read_are_ignored(client):
    body = {"model": "echo", "messages": [{**HI[0], "mine": 1}], "temperature": "hot", "mine": {}}
    async with client.post("/v1/chat/completions", json=body, headers=HEADERS) as response:
        assert (await response.json())["choices"][0]["message"]["content"] == ANSWER


async def test_openai_clients_get_whole_and_streamed_answers(client):
    base_url = str(client.make_url("/v1"))
    async with openai.AsyncOpenAI(base_url=base_url, api_key="any", max_retries=0) as sdk:
        answer = await sdk.chat.completions.create(model="echo", messages=HI)
        assert answer.choices[0].message.content == ANSWER
        assert (await sdk.responses.create(model="sandbox/echo", input="hi")).output_text == ANSWER
        stream = await sdk.chat.completions.create(model="echo", messages=HI, stream=True)
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert len(texts) > 3 and "".join(texts) == ANSWER
        with pytest.raises(openai.RateLimitError):
            await sdk.chat.completions.create(model="fail-429", messages=HI)
        assert "echo" in [model.id async for model in sdk.models.list()]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"model": "echo", "messages": HI, "stream": True}),
        (
            "/v1beta/models/echo:streamGenerateContent?alt=sse",
            {"contents": [{"parts": [{"text": "hi"}]}]},
        ),
    ],
)
async def test_anthropic_and_gemini_clients_get_streams(client, path, body):
    async with client.post(path, json=body, headers=HEADERS) as response:
        assert response.content_type == "text/event-stream"
        lines = (await response.text()).splitlines()
    events = [orjson.loads(line[6:]) for line in lines if line.startswith("data: ")]
    text = "".join(
        event.get("delta", {}).get("text", "")
        + "".join(
            part["text"]
            for candidate in event.get("candidates", ())
            for part in candidate["content"]["parts"]
        )
        for event in events
    )
    assert text == ANSWER


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/chat/completions", 401),
        ("/v1/messages", 401),
        ("/v1beta/models/echo:generateContent", 403),
    ],
)
async def test_a_request_without_a_key_is_refused(client, path, status):
    async with client.post(path, json={}) as response:
        assert (await response.json())["error"]
        assert response.status == status


@pytest.mark.parametrize("path", ["/nowhere", "/deepseek/v1/models", "/sandbox/log"])
async def test_paths_of_no_api_are_not_found(client, path):
    async with client.get(path, headers=HEADERS) as response:
        assert response.status == 404
