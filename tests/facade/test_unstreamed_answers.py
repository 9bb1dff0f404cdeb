"""Providers that do not stream where they are asked to, and such as always do."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anthropic
import openai
import orjson
import pytest
import pytest_asyncio
from aiohttp import ClientSession, web
from yarl import URL

from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = ("openai/echo", "native/echo", "anthropic/echo", "gemini/echo")
TOOL = {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}
CALLS = "use get_weather"
METHODS = {"generateContent": "streamGenerateContent", "streamGenerateContent": "generateContent"}


async def _answer_the_other_way(sandbox: str, request: web.Request) -> web.StreamResponse:
    """Ask the sandbox for the other of whole and streamed, and send what it answers."""
    body = await request.json()
    url = URL(sandbox).with_path(request.path)
    path, _, method = request.path.rpartition(":")
    if path:
        is_streamed = method == "streamGenerateContent"
        url = url.with_path(f"{path}:{METHODS[method]}")
        url = url if is_streamed else url.with_query(alt="sse")
    else:
        is_streamed = body.pop("stream", False)
        body.pop("stream_options", None)
        if not is_streamed:
            body["stream"] = True
            if request.path.endswith("/chat/completions"):
                body["stream_options"] = {"include_usage": True}
    headers = {"authorization": "Bearer k", "x-api-key": "k", "x-goog-api-key": "k"}
    if "anthropic-version" in request.headers:
        del headers["authorization"]
        headers["anthropic-version"] = request.headers["anthropic-version"]
    async with ClientSession() as http, http.post(url, json=body, headers=headers) as answer:
        # Some send a charset, as Express does.
        kind = answer.headers["content-type"].partition(";")[0] + "; charset=utf-8"
        given = {"content-type": kind}
        return web.Response(status=answer.status, body=await answer.read(), headers=given)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    relay = web.Application()
    async with serving(create_app()) as sandbox:
        relay.router.add_post("/{path:.*}", partial(_answer_the_other_way, sandbox))
        async with serving(relay) as url:
            providers = {
                "openai": {"kind": "openai", "base_url": f"{url}/v1", "responses": False},
                "native": {"kind": "openai", "base_url": f"{url}/v1", "responses": True},
                "anthropic": {"kind": "anthropic", "base_url": url},
                "gemini": {"kind": "gemini", "base_url": f"{url}/v1beta"},
            }
            keyed = {name: {**table, "api_key": "k"} for name, table in providers.items()}
            folder = tmp_path_factory.mktemp("gateway")
            async with running_gateway(folder, providers=keyed) as started:
                yield started


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest_asyncio.fixture(loop_scope="module")
async def chats(gateway: Gateway) -> AsyncIterator[openai.AsyncOpenAI]:
    url = f"{gateway.url}/beta/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key=gateway.key, max_retries=0) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def messages(gateway: Gateway) -> AsyncIterator[anthropic.AsyncAnthropic]:
    url = f"{gateway.url}/beta"
    async with anthropic.AsyncAnthropic(base_url=url, api_key=gateway.key, max_retries=0) as client:
        yield client


@pytest.mark.parametrize("said", ["hello there", CALLS])
async def test_chats(chats: openai.AsyncOpenAI, model: str, streamed: bool, said: str) -> None:
    body: Any = {
        "model": model,
        "messages": [{"role": "user", "content": said}],
        "tools": [{"type": "function", "function": TOOL}],
    }
    if streamed:
        options: Any = {"include_usage": True}
        async with chats.chat.completions.stream(**body, stream_options=options) as stream:
            answer: Any = await stream.get_final_completion()
    else:
        answer = await chats.chat.completions.create(**body)
    (choice,) = answer.choices
    if said == CALLS:
        (call,) = choice.message.tool_calls
        assert (choice.finish_reason, call.function.name) == ("tool_calls", "get_weather")
        assert isinstance(orjson.loads(call.function.arguments), dict)
    else:
        assert (choice.finish_reason, choice.message.tool_calls or None) == ("stop", None)
        assert said in choice.message.content
    assert answer.usage.prompt_tokens > 0 < answer.usage.completion_tokens


@pytest.mark.parametrize("said", ["hello there", CALLS])
async def test_messages(
    messages: anthropic.AsyncAnthropic, model: str, streamed: bool, said: str
) -> None:
    body: Any = {
        "model": model,
        "max_tokens": 3_000,
        "messages": [{"role": "user", "content": said}],
        "tools": [{"name": "get_weather", "input_schema": TOOL["parameters"]}],
        "thinking": {"type": "enabled", "budget_tokens": 2_000},
    }
    if streamed:
        async with messages.messages.stream(**body) as stream:
            answer: Any = await stream.get_final_message()
    else:
        answer = await messages.messages.create(**body)
    kinds = [block.type for block in answer.content]
    if not model.startswith(("openai/", "native/")):
        assert kinds[0] == "thinking"
        assert answer.content[0].thinking
        assert answer.content[0].signature
    if said == CALLS:
        assert (answer.stop_reason, kinds[-1]) == ("tool_use", "tool_use")
        assert answer.content[-1].name == "get_weather"
    else:
        assert answer.stop_reason == "end_turn"
        assert said in answer.content[-1].text
    assert answer.usage.input_tokens > 0 < answer.usage.output_tokens


@pytest.mark.parametrize("said", ["hello there", CALLS])
async def test_responses(chats: openai.AsyncOpenAI, model: str, streamed: bool, said: str) -> None:
    body: Any = {"model": model, "input": said, "tools": [{"type": "function", **TOOL}]}
    if streamed:
        async with chats.responses.stream(**body) as stream:
            answer: Any = await stream.get_final_response()
    else:
        answer = await chats.responses.create(**body)
    assert answer.status == "completed"
    if said == CALLS:
        calls = [item for item in answer.output if item.type == "function_call"]
        assert [call.name for call in calls] == ["get_weather"]
    else:
        assert said in answer.output_text
    assert answer.usage.input_tokens > 0 < answer.usage.output_tokens
