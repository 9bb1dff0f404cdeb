"""Fields that servers refuse, each in its own words: dropped once, remembered, and named."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import Upstream, create_app
from tests.upstream.log import Entry, RequestLog
from tests.upstream.personalities.claude_5 import CLAUDE_5
from tests.upstream.personalities.gemini_old import GEMINI_LITE, GEMINI_OLD
from tests.upstream.personalities.mistral import MISTRAL
from tests.upstream.personalities.refusing import REFUSING

pytestmark = pytest.mark.asyncio(loop_scope="module")

PERSONALITIES = (CLAUDE_5, GEMINI_LITE, GEMINI_OLD, MISTRAL, *REFUSING)
# By the kind of a provider: the end of its base URL.
VERSIONS = {"openai": "/v1", "anthropic": "", "gemini": "/v1beta"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
SERVERS = ["fireworks", "groq", "nvidia", "openai-old", "rust", "vllm-strict"]
STRICT = pytest.mark.parametrize("server", SERVERS)
OLDER = pytest.mark.parametrize("server", ["claude-old", "bedrock"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[Upstream]:
    log = RequestLog()
    async with serving(create_app(log, personalities=PERSONALITIES)) as url:
        yield Upstream(url, log)


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(tmp_path, upstream) -> AsyncIterator[Gateway]:
    """Return a gateway that has learnt nothing, with a provider for each personality."""
    providers: dict[str, Any] = {
        one.name: {
            "kind": one.dialect,
            "base_url": f"{upstream.url}/{one.name}{VERSIONS[one.dialect]}",
            "api_key": "k",
        }
        for one in PERSONALITIES
    }
    providers["lengths"]["responses"] = True
    upstream.log.clear()
    async with running_gateway(tmp_path, upstream.url, providers=providers) as one:
        yield one


async def sent(gateway: Gateway, path: str, body: dict[str, Any], **headers: str) -> set[str]:
    """Return what the gateway dropped or adapted, by its headers."""
    keys = gateway.api_key() if path.endswith("messages") else gateway.bearer()
    url = f"{gateway.url}/beta/v1/{path}"
    async with gateway.http.post(url, json=body, headers={**keys, **headers}) as answer:
        text = await answer.text()
        assert answer.status == 200, text
        listed = (answer.headers.get(f"x-gateway-{name}", "") for name in ("dropped", "adapted"))
        return {name for names in listed for name in names.split(", ") if name}


def requests(upstream: Upstream) -> list[Entry]:
    """Return the requests to models."""
    return [entry for entry in upstream.log.entries if entry.body is not None]


def chat(server: str, **fields: Any) -> dict[str, Any]:
    return {
        "model": f"{server}/echo",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        **fields,
    }


def tool(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": SCHEMA, **fields}}


@pytest.mark.parametrize("server", [*SERVERS, "mistral"])
@STREAMED
async def test_an_unknown_field_is_dropped_once(gateway, upstream, server, stream):
    body = chat(server, stream=stream, made_up={"a": 1})
    assert await sent(gateway, "chat/completions", body) == {"made_up"}
    before = len(requests(upstream))
    assert await sent(gateway, "chat/completions", body) == {"made_up"}
    assert len(requests(upstream)) == before + 1


@STRICT
async def test_an_unknown_field_of_a_function_is_dropped(gateway, server):
    body = chat(server, tools=[tool(), tool(name="g", strict=True)])
    assert await sent(gateway, "chat/completions", body) == {"tools[].function.strict"}


@STRICT
async def test_unknown_fields_at_several_places_are_dropped(gateway, server):
    body = chat(server, made_up=1, tools=[{**tool(strict=True), "beside": 1}])
    body["messages"][0]["own"] = 1
    body["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    dropped = await sent(gateway, "chat/completions", body)
    assert {"made_up", "tools[].function.strict", "tools[].beside", "messages[].own"} <= dropped
    assert any(name.endswith("cache_control") for name in dropped)


async def test_names_in_camel_case_are_those_of_the_body(gateway):
    body = chat("xai", presence_penalty=0.5, frequency_penalty=0.5)
    dropped = await sent(gateway, "chat/completions", body)
    assert dropped == {"presence_penalty", "frequency_penalty"}


async def test_a_field_that_changes_the_meaning_is_not_dropped(gateway):
    url = f"{gateway.url}/beta/v1/chat/completions"
    body = chat("xai", stop=["x"])
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        assert answer.status == 400
        assert "stop" in (await answer.json())["error"]["message"]


def messages(server: str, **fields: Any) -> dict[str, Any]:
    return {
        "model": f"{server}/echo",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hi"}],
        **fields,
    }


@OLDER
@STREAMED
async def test_newer_fields_of_tools_are_dropped_from_older_ones(gateway, server, stream):
    tools = [{"name": "f", "input_schema": SCHEMA, "strict": True, "input_examples": [{}]}]
    body = messages(server, stream=stream, tools=tools)
    dropped = await sent(gateway, "messages", body)
    assert dropped == {"tools[].strict", "tools[].input_examples"}


@OLDER
async def test_a_refused_lifetime_leaves_the_breakpoint(gateway, upstream, server):
    control = {"type": "ephemeral", "ttl": "1h"}
    body = messages(server, system=[{"type": "text", "text": "Be brief", "cache_control": control}])
    block = {"type": "text", "text": "Hi", "cache_control": control}
    body["messages"] = [{"role": "user", "content": [block]}]
    await sent(gateway, "messages", body)
    last = requests(upstream)[-1].body
    assert last["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert last["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


async def test_an_unknown_beta_feature_is_dropped_alone(gateway, upstream):
    known, unknown = "context-1m-2025-08-07", "made-up-2030-01-01"
    body = messages("claude-5")
    for _ in range(2):
        dropped = await sent(gateway, "messages", body, **{"anthropic-beta": f"{known},{unknown}"})
        assert dropped == {f"anthropic-beta.{unknown}"}
    assert len(requests(upstream)) == 3
    assert requests(upstream)[-1].headers["anthropic-beta"] == known


async def test_a_refused_keyword_moves_to_the_description(gateway, upstream):
    schema = {"type": "object", "properties": {"city": {"type": "string", "pattern": "^[A-Z]"}}}
    body = chat("schema-words", tools=[tool(parameters=schema)])
    dropped = await sent(gateway, "chat/completions", body)
    assert dropped == {"tools[].function.parameters.pattern"}
    sent_schema = requests(upstream)[-1].body["tools"][0]["function"]["parameters"]
    assert sent_schema["properties"]["city"] == {
        "type": "string",
        "description": '{"pattern":"^[A-Z]"}',
    }


@STREAMED
async def test_fields_that_google_does_not_know_are_dropped_once(gateway, upstream, stream):
    body = chat("gemini-old", stream=stream, presence_penalty=0.5, seed=7, temperature=0.5)
    assert await sent(gateway, "chat/completions", body) == {"presence_penalty", "seed"}
    assert len(requests(upstream)) == 2
    assert await sent(gateway, "chat/completions", body) == {"presence_penalty", "seed"}
    assert len(requests(upstream)) == 3
    config = requests(upstream)[-1].body["generationConfig"]
    assert config == {"temperature": 0.5}


async def test_a_thinking_level_that_google_does_not_know_is_dropped(gateway, upstream):
    body = chat("gemini-old", reasoning_effort="high")
    assert await sent(gateway, "chat/completions", body) == {"reasoning_effort"}
    config = requests(upstream)[-1].body["generationConfig"]
    assert config == {"thinkingConfig": {"includeThoughts": True}}


async def test_ids_of_calls_that_google_does_not_know_are_dropped(gateway, upstream):
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = chat("gemini-old", tools=[tool()])
    body["messages"] += [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
    ]
    await sent(gateway, "chat/completions", body)
    _, called, result = requests(upstream)[-1].body["contents"]
    assert called["parts"][0]["functionCall"] == {"name": "f", "args": {}}
    assert result["parts"][0]["functionResponse"].keys() == {"name", "response"}


async def test_a_keyword_that_google_refuses_is_stated(gateway, upstream):
    cities = {"type": "array", "items": {"type": "string"}, "minItems": 2}
    schema = {"type": "object", "properties": {"cities": cities}}
    body = chat("gemini-old", tools=[tool(parameters=schema)])
    dropped = await sent(gateway, "chat/completions", body)
    assert dropped == {"tools[].function.parameters.minItems"}
    (function,) = requests(upstream)[-1].body["tools"][0]["functionDeclarations"]
    assert function["parametersJsonSchema"]["properties"]["cities"] == {
        "type": "array",
        "items": {"type": "string"},
        "description": '{"minItems":2}',
    }


async def test_a_model_of_google_without_penalties_gets_none(gateway, upstream):
    body = chat("gemini-lite", presence_penalty=0.5, frequency_penalty=0.5, seed=7)
    dropped = await sent(gateway, "chat/completions", body)
    assert dropped == {"presence_penalty", "frequency_penalty"}
    assert requests(upstream)[-1].body["generationConfig"] == {"seed": 7}


async def test_what_changes_the_meaning_is_not_dropped_for_google(gateway):
    url = f"{gateway.url}/beta/v1/chat/completions"
    body = chat("gemini-old", response_format={"type": "json_object"}, modalities=["image"])
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        assert answer.status == 400
        assert "responseModalities" in (await answer.json())["error"]["message"]


ODD = {"type": "object", "properties": {"city": {"type": "text"}}}


@STREAMED
async def test_one_odd_tool_does_not_fail_a_chat(gateway, upstream, stream):
    tools = [tool(), tool(name="g", parameters=ODD, description="Odd.")]
    body = chat("schema-words", stream=stream, tools=tools)
    assert await sent(gateway, "chat/completions", body) == {"tools[1].function.parameters:text"}
    first, second = requests(upstream)[-1].body["tools"]
    assert first["function"]["parameters"] == SCHEMA
    assert second["function"]["parameters"] == {"type": "object", "properties": {}}
    assert second["function"]["description"].startswith("Odd.\n\n")
    assert '"city":{"type":"text"}' in second["function"]["description"]


@STREAMED
async def test_one_odd_tool_does_not_fail_messages(gateway, upstream, stream):
    tools = [{"name": "f", "input_schema": SCHEMA}, {"name": "g", "input_schema": ODD}]
    body = messages("claude-schemas", stream=stream, tools=tools)
    assert await sent(gateway, "messages", body) == {"tools[1].input_schema:text"}
    first, second = requests(upstream)[-1].body["tools"]
    assert first["input_schema"] == SCHEMA
    assert second["input_schema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize("server", ["schema-words", "claude-schemas"])
async def test_an_odd_tool_of_a_namespace_is_named(gateway, server):
    first, odd = ({"type": "function", "name": name, "parameters": SCHEMA} for name in "fg")
    members = [first, {**odd, "parameters": ODD}]
    namespace = {"type": "namespace", "name": "n", "description": "N", "tools": members}
    body = {"model": f"{server}/echo", "store": False, "input": "Hi"}
    body["tools"] = [first, namespace, {**first, "name": "last"}]
    assert await sent(gateway, "responses", body) == {"tools[1].tools[1].parameters:text"}


async def test_a_tool_after_a_dropped_one_is_named(gateway):
    dropped = {"type": "web_search_preview"}
    odd = {"type": "function", "name": "g", "parameters": ODD}
    body = {"model": "schema-words/echo", "store": False, "input": "Hi", "tools": [dropped, odd]}
    assert await sent(gateway, "responses", body) == {"tools[0]", "tools[1].parameters:text"}


async def test_a_description_that_is_too_long_is_cut(gateway, upstream):
    body = chat("lengths", tools=[tool(description="d" * 3_000)])
    adapted = await sent(gateway, "chat/completions", body)
    assert adapted == {"tools[].function.description:shortened"}
    assert len(requests(upstream)[-1].body["tools"][0]["function"]["description"]) == 1_024


async def test_ids_that_are_too_long_stay_those_of_their_calls(gateway, upstream):
    long_id = "call_" + "x" * 200
    call = {"type": "function_call", "call_id": long_id, "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": long_id, "output": "1"}
    body = {
        "model": "lengths/echo",
        "store": False,
        "input": [{"role": "user", "content": "Hi"}, call, output],
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
    }
    await sent(gateway, "responses", body)
    _, first, second = requests(upstream)[-1].body["input"]
    assert first["call_id"] == second["call_id"]
    assert len(first["call_id"]) == 64


@STREAMED
async def test_max_tokens_that_do_not_fit_are_lowered(gateway, upstream, stream):
    text = "word " * 5_000
    body = messages("small-context", stream=stream, max_tokens=8_000)
    body["messages"] = [{"role": "user", "content": text}]
    assert await sent(gateway, "messages", body) == {"max_tokens"}
    assert requests(upstream)[-1].body["max_tokens"] == 8_192 - 5_000
    short = messages("small-context", max_tokens=8_000)
    assert await sent(gateway, "messages", short) == set()


async def test_a_prompt_that_does_not_fit_is_the_callers(gateway):
    body = messages("small-context", messages=[{"role": "user", "content": "word " * 9_000}])
    url = f"{gateway.url}/beta/v1/messages"
    async with gateway.http.post(url, json=body, headers=gateway.api_key()) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["code"] == "context_length_exceeded"
