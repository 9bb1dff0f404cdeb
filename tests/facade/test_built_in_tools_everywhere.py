"""The gateway's own tools over providers with ways of their own, and from one to another."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.grid import each_row
from tests.upstream.app import create_app
from tests.upstream.personalities import OF_ANTHROPIC, OF_OPENAI
from tests.web_tools import Web, with_web

pytestmark = pytest.mark.asyncio(loop_scope="module")

OFFICIAL = ("openai", "anthropic", "gemini")
MODELS = {name: f"{name}/echo" for name in ("sandbox", *OFFICIAL, *OF_OPENAI, *OF_ANTHROPIC)}
MODELS["claude-5"] = "claude-5/claude-sonnet-5"
THINKING = {"type": "enabled", "budget_tokens": 1024}
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with serving(create_app()) as sandbox:
        at = {
            "openai": f"{sandbox}/v1",
            "anthropic": sandbox,
            "gemini": f"{sandbox}/v1beta",
            **{name: f"{sandbox}/{name}/v1" for name in OF_OPENAI},
            **{name: f"{sandbox}/{name}" for name in OF_ANTHROPIC},
        }
        kinds = {"anthropic": "anthropic", "gemini": "gemini"}
        kinds |= dict.fromkeys(OF_ANTHROPIC, "anthropic")
        providers = {
            name: {"kind": kinds.get(name, "openai"), "base_url": url, "api_key": "k"}
            for name, url in at.items()
        }
        with with_web(Web()):
            folder = tmp_path_factory.mktemp("gateway")
            async with running_gateway(folder, sandbox, providers=providers) as gateway:
                async with client_of(gateway) as one:
                    yield one


def client_of(gateway: Gateway) -> anthropic.AsyncAnthropic:
    url = f"{gateway.url}/beta"
    return anthropic.AsyncAnthropic(api_key=gateway.key, base_url=url, max_retries=0)


async def ask(
    client: anthropic.AsyncAnthropic, name: str, messages: list[Any], *, stream: bool, **fields: Any
) -> anthropic.types.Message:
    request_fields = {
        **{"model": MODELS[name], "max_tokens": 3000, "messages": messages},
        **{"extra_body": {"use_built_in_tools": True}, **fields},
    }
    if not stream:
        return await client.messages.create(**request_fields)
    async with client.messages.stream(**request_fields) as events:
        return await events.get_final_message()


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(message: anthropic.types.Message) -> dict[str, Any]:
    return {"role": "assistant", "content": [one.to_dict() for one in message.content]}


def results(message: anthropic.types.Message) -> list[Any]:
    return [one for one in message.content if one.type == "web_search_tool_result"]


@STREAMED
@each_row("name", MODELS)
async def test_every_provider_is_asked_in_rounds(client, name, stream):
    asked = "sandbox: call 2 times web_search."
    thinking = {} if name == "claude-5" else {"thinking": THINKING}
    message = await ask(client, name, [user(asked)], stream=stream, **thinking)
    assert len(results(message)) == 2
    assert message.stop_reason == "end_turn"
    assert "Typst sets documents." in message.content[-1].text
    following = [user(asked), said(message), user("And now?")]
    answer = await ask(client, name, following, stream=stream, **thinking)
    assert 'you said "And now?"' in answer.content[-1].text


@each_row("other", ["sandbox", *OFFICIAL, "mistral", "claude-5"])
@each_row("name", ["sandbox", *OFFICIAL])
async def test_any_model_continues_from_another_s_results(client, name, other):
    tool = {"name": "get_weather", "input_schema": {"type": "object"}}
    asked = user("Please call web_search and get_weather.")
    message = await ask(client, name, [asked], stream=True, tools=[tool], thinking=THINKING)
    assert message.stop_reason == "tool_use"
    (call,) = [one for one in message.content if one.type == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "14 degrees"}
    following = [asked, said(message), {"role": "user", "content": [result]}]
    answer = await ask(client, other, following, stream=False, tools=[tool])
    assert "Typst sets documents." in answer.content[-1].text
    assert "14 degrees" in answer.content[-1].text
