"""Legacy completions, with OpenAI's client: passed on, or as chats over models of all dialects."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import openai
import pytest
import pytest_asyncio
from aiohttp import web

from tests.gateway_in_process import running_gateway, serving
from tests.upstream.app import create_app
from tests.upstream.log import RequestLog

pytestmark = pytest.mark.asyncio(loop_scope="module")

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
CHATS = ["chats/echo", "anthropic/echo", "gemini/echo", "sandbox/echo"]


def theirs(text: str) -> dict[str, Any]:
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": "stop"}
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "base"}
    return {**head, "choices": [choice], "usage": USAGE}


@dataclass(frozen=True)
class Served:
    """A client, and what providers were sent: one with the endpoint, and others."""

    client: openai.AsyncOpenAI
    bodies: list[dict[str, Any]]
    log: RequestLog
    chat_attempts: list[str]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    bodies, attempts, log = [], [], RequestLog()

    async def complete(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        bodies.append(body)
        if body["model"] == "gpt-chat":
            attempts.append(body["model"])
            message = "This is a chat model and not supported in the v1/completions endpoint."
            return web.json_response({"error": {"message": message}}, status=404)
        if not body.get("stream"):
            return web.json_response(theirs("Yes."))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"id":"cmpl-1","choices":[{"text":"Yes.","index":0}]}\n\n')
        await response.write(b"data: [DONE]\n\n")
        return response

    async def chat(request: web.Request) -> web.Response:
        message = {"role": "assistant", "content": "From a chat."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-chat"}
        return web.json_response({**head, "choices": [choice], "usage": USAGE})

    own = web.Application()
    own.router.add_post("/v1/completions", complete)
    own.router.add_post("/v1/chat/completions", chat)
    folder = tmp_path_factory.mktemp("gateway")
    async with serving(create_app(log)) as url, serving(own) as completing:
        addresses = {
            "base": {"kind": "openai", "base_url": f"{completing}/v1"},
            "chats": {"kind": "openai", "base_url": f"{url}/v1"},
            "anthropic": {"kind": "anthropic", "base_url": url},
            "gemini": {"kind": "gemini", "base_url": f"{url}/v1beta"},
        }
        providers = {name: {**one, "api_key": "k"} for name, one in addresses.items()}
        async with (
            running_gateway(folder, url, providers=providers) as gateway,
            openai.AsyncOpenAI(
                api_key=gateway.key, base_url=f"{gateway.url}/v1", max_retries=0
            ) as client,
        ):
            yield Served(client, bodies, log, attempts)


async def test_a_provider_with_the_endpoint_gets_the_request(served: Served) -> None:
    fields: dict[str, Any] = {"best_of": 3, "logprobs": 2, "echo": True, "suffix": "!"}
    made = await served.client.completions.create(model="base/base", prompt=[[1, 2]], **fields)
    assert made.model_dump(mode="json", exclude_unset=True) == theirs("Yes.")
    assert served.bodies[-1] == {"model": "base", "prompt": [[1, 2]], **fields}
    stream = await served.client.completions.create(model="base/base", prompt="So?", stream=True)
    assert [chunk.choices[0].text async for chunk in stream] == ["Yes."]


async def test_a_model_that_only_chats_is_remembered(served: Served) -> None:
    for _ in range(3):
        made = await served.client.completions.create(model="base/gpt-chat", prompt="So?")
        assert made.choices[0].text == "From a chat."
    assert len(served.chat_attempts) == 1


@pytest.mark.parametrize("model", CHATS)
async def test_chats_answer_prompts(served: Served, model: str) -> None:
    create = served.client.completions.create
    made = await create(model=model, prompt=["One", "Two"], max_tokens=50, temperature=0.5)
    assert made.object == "text_completion"
    assert [choice.index for choice in made.choices] == [0, 1]
    assert "One" in made.choices[0].text and "Two" in made.choices[1].text
    assert {choice.finish_reason for choice in made.choices} == {"stop"}
    assert made.usage is not None and made.usage.total_tokens > 10
    whole = await create(model=model, prompt="Hello", echo=True, best_of=1)
    assert whole.choices[0].text.startswith("Hello")
    stream = await create(
        model=model,
        prompt="Hello",
        echo=True,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    texts = [choice.text for chunk in chunks for choice in chunk.choices]
    assert "".join(texts) == whole.choices[0].text and len(texts) > 2
    assert [one.finish_reason for chunk in chunks for one in chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None and chunks[-1].usage.total_tokens > 5


async def test_what_a_chat_cannot_say_is_refused(served: Served) -> None:
    before = len(served.log.entries)
    rows: list[tuple[dict[str, Any], str]] = [
        ({"prompt": [1, 2]}, "prompt[0]"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": ["a"] * 21}, "prompt"),
        ({"prompt": ["a", "b"], "stream": True}, "prompt"),
        ({"suffix": "end"}, "suffix"),
        ({"logprobs": 0}, "logprobs"),
        ({"best_of": 2}, "best_of"),
        ({"temperature": "hot"}, "temperature"),
        ({"model": "chats/echo", "memory_id": "m"}, "memory_id"),
    ]
    for fields, param in rows:
        body = {"model": "anthropic/echo", "prompt": "Hi", **fields}
        with pytest.raises(openai.BadRequestError) as error:
            await served.client.completions.create(
                **{"prompt": "Hi", "model": "x"}, extra_body=body
            )
        assert error.value.param == param, (fields, error.value)
    assert len(served.log.entries) == before
    with pytest.raises(openai.NotFoundError):
        await served.client.completions.create(model="nowhere/none", prompt="Hi")
    with pytest.raises(openai.RateLimitError):
        await served.client.completions.create(model="sandbox/fail-429", prompt="Hi")
