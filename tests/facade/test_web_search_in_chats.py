"""`web_search_options` of chat completions, served by the gateway's own search."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway
from tests.web_tools import TYPST, Web, with_web

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASKED = "Please call web_search about Typst."
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
MODELS = [{"name": "searcher", "provider": "openai", "upstream": "gpt-4o-search-preview"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture(scope="module")
def web() -> Web:
    return Web()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory, web) -> AsyncIterator[Gateway]:
    with with_web(web):
        async with running_gateway(tmp_path_factory.mktemp("gateway"), models=MODELS) as one:
            yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def without_engine(tmp_path_factory) -> AsyncIterator[Gateway]:
    with with_web(None):
        async with running_gateway(tmp_path_factory.mktemp("gateway")) as one:
            yield one


@pytest.fixture(autouse=True)
def fresh(web):
    web.__init__()


@pytest.fixture(params=["sandbox", "openai", "anthropic", "gemini"])
def model(request) -> str:
    return f"{request.param}/echo"


def client_of(gateway: Gateway) -> openai.AsyncOpenAI:
    url = f"{gateway.url}/beta/v1"
    return openai.AsyncOpenAI(api_key=gateway.key, base_url=url, max_retries=0)


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway) -> AsyncIterator[openai.AsyncOpenAI]:
    async with client_of(gateway) as one:
        yield one


def body(model: str, text: str = ASKED, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"model": model, "messages": messages, "web_search_options": {}, **fields}


async def ask(client, stream: bool, given: dict[str, Any]):
    if not stream:
        return (await client.chat.completions.create(**given)).choices[0]
    async with client.chat.completions.stream(**given) as events:
        async for _ in events:
            pass
        return (await events.get_final_completion()).choices[0]


def annotations(message) -> list[dict[str, Any]]:
    return [one if isinstance(one, dict) else one.model_dump() for one in message.annotations or ()]


@STREAMED
async def test_a_chat_is_answered_from_the_web(client, web, model, stream):
    choice = await ask(client, stream, body(model))
    assert choice.finish_reason == "stop"
    assert not choice.message.tool_calls
    assert "Typst sets documents." in choice.message.content
    assert "I call web_search.\n\nSandbox" in choice.message.content
    assert len(web.queries) == 1


@STREAMED
async def test_pages_that_the_answer_names_are_annotations(client, model, stream):
    message = (await ask(client, stream, body(model))).message
    cited = [one["url_citation"] for one in annotations(message)]
    assert [one["url"] for one in cited] == [TYPST.url, "https://evil.example"]
    for one in cited:
        named = message.content[one["start_index"] : one["end_index"]]
        assert named.rstrip("/") == one["url"]
    assert cited[0]["title"] == TYPST.title


@STREAMED
async def test_the_options_bound_the_search(client, web, stream):
    place = {"type": "approximate", "approximate": {"city": "Berlin", "country": "DE"}}
    options = {
        "search_context_size": "high",
        "user_location": place,
        "filters": {"allowed_domains": ["typst.example"]},
    }
    await ask(client, stream, body("openai/echo", web_search_options=options))
    assert web.queries[0][1:] == (10, ["typst.example"], [])


@pytest.mark.parametrize("model", ["openai/echo"])
async def test_the_provider_gets_a_tool_and_no_options(client, gateway, model):
    place = {"type": "approximate", "approximate": {"city": "Berlin", "country": "DE"}}
    await ask(client, False, body(model, web_search_options={"user_location": place}))
    async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as answer:
        first, second = (await answer.json())[-2:]
    assert "web_search_options" not in first["body"]
    (tool,) = first["body"]["tools"]
    assert tool["function"]["name"] == "web_search"
    assert "Berlin, DE" in tool["function"]["description"]
    assert [one["role"] for one in second["body"]["messages"]] == ["user", "assistant", "tool"]


@STREAMED
async def test_the_callers_tool_beside_a_search_comes_back(client, web, model, stream):
    asked = "Please call web_search and get_weather."
    choice = await ask(client, stream, body(model, asked, tools=[WEATHER]))
    assert choice.finish_reason == "tool_calls"
    assert [one.function.name for one in choice.message.tool_calls] == ["get_weather"]
    assert len(web.queries) == 1


async def test_a_model_that_searches_itself_gets_the_options(client, gateway, web):
    options = {"search_context_size": "low"}
    with pytest.raises(openai.APIStatusError):  # the sandbox has no such model
        await client.chat.completions.create(**body("searcher", web_search_options=options))
    async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as answer:
        sent = (await answer.json())[-1]["body"]
    assert sent["web_search_options"] == options
    assert "tools" not in sent


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ([], "web_search_options"),
        ({"search_context_size": []}, "web_search_options.search_context_size"),
        ({"user_location": "Berlin"}, "web_search_options.user_location"),
        (
            {"user_location": {"approximate": {"city": 1}}},
            "web_search_options.user_location.approximate.city",
        ),
        ({"filters": {"allowed_domains": "a"}}, "web_search_options.filters.allowed_domains"),
    ],
)
async def test_a_wrong_option_is_named(client, options, path):
    with pytest.raises(openai.BadRequestError) as refused:
        await client.chat.completions.create(**body("openai/echo", web_search_options=options))
    assert refused.value.param == path


async def test_several_answers_cannot_search(client):
    with pytest.raises(openai.BadRequestError) as refused:
        await client.chat.completions.create(**body("openai/echo", n=2))
    assert refused.value.param == "n"


# Gemini has a search of its own.
@pytest.mark.parametrize("provider", ["sandbox", "anthropic"])
async def test_without_a_search_engine_the_setting_is_named(without_engine, provider):
    async with client_of(without_engine) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(**body(f"{provider}/echo"))
    assert refused.value.param == "web_search_options"
    assert "[tools.web_search]" in refused.value.message


async def test_openai_search_options_pass_without_a_search_engine(without_engine):
    async with client_of(without_engine) as client:
        await client.chat.completions.create(**body("openai/echo"))
    async with without_engine.http.get(f"{without_engine.upstream}/sandbox/log") as answer:
        assert (await answer.json())[-1]["body"]["web_search_options"] == {}


async def test_options_of_another_shape_are_a_providers_own(client, gateway):
    options = {"search_context_size": "huge", "user_location": {"latitude": 1}, "engine": "x"}
    request_body = body("openai/echo", web_search_options=options)
    raw = await client.chat.completions.with_raw_response.create(**request_body)
    assert {f"web_search_options.{name}" for name in options} <= set(
        raw.headers["x-gateway-dropped"].replace(" ", "").split(",")
    )
    with pytest.raises(openai.APIStatusError):
        await client.chat.completions.create(**body("searcher", web_search_options=options))
    async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as answer:
        assert (await answer.json())[-1]["body"]["web_search_options"] == options
