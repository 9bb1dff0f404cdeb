"""Requests of responses through the engine, to servers that the sandbox plays."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message, ToolResult
from gateway.inference.v1.inference_pb2 import (
    Event,
    GenerateRequest,
    GenerateResponse,
    ThinkingConfig,
    Tool,
    WebTool,
)
from services.common.errors import GatewayError, UpstreamError
from services.common.http import Client
from services.common.messages.lazy_request import LazyRequest
from services.common.settings import Limits, Memory, Model, Provider
from services.inference.metrics import InferenceMetrics
from services.inference.models.routing import Models
from services.inference.providers import registry
from services.inference.request.thinking import Signer
from services.inference.routes import Routes
from services.inference.run.engine import Engine
from tests.lazy_requests import AddingLazyRequest
from tests.services.inference.fake_adaptation import adaptation
from tests.services.inference.fake_files import FakeFiles
from tests.services.inference.fake_memories import FakeMemories
from tests.services.inference.providers.openai_responses.responses_answers import natives
from tests.services.inference.providers.openai_responses.responses_calls import (
    ASSISTANT,
    RESPONSES,
    SYSTEM,
    USER,
    opaque,
    says,
)
from tests.upstream.app import Upstream, serving
from tests.upstream.log import RequestLog

CHAT = conversation_pb2.DIALECT_OPENAI
LOW = ThinkingConfig(effort="low", extra=opaque({"summary": "auto"}))
WEATHER = Tool(name="get_weather", input_schema=b'{"type":"object","properties":{}}')


class Gateway:
    """An engine in front of the sandbox, and the servers that it knows to lack the endpoint."""

    def __init__(self, sandbox: Upstream, client: Client) -> None:
        self.log: RequestLog = sandbox.log
        self.unsupported_urls: set[str] = set()
        self._url = sandbox.url
        self._client = client
        self.engine = self._engine()

    def _engine(self) -> Engine:
        native = {"responses": True}
        providers = {
            "openai": Provider(kind="openai", base_url=f"{self._url}/v1", api_key="k", **native),
            "o": Provider(
                kind="openai", base_url=f"{self._url}/openai-o/v1", api_key="k", **native
            ),
            "lacks": Provider(
                kind="openai", base_url=f"{self._url}/ollama/v1", api_key="k", **native
            ),
            "chat": Provider(kind="openai", base_url=f"{self._url}/v1", api_key="k"),
            "deepseek": Provider(kind="openai", base_url=f"{self._url}/deepseek/v1", api_key="k"),
            "anthropic": Provider(kind="anthropic", base_url=self._url, api_key="k"),
            "gemini": Provider(kind="gemini", base_url=f"{self._url}/v1beta", api_key="k"),
        }
        metrics = InferenceMetrics(CollectorRegistry())
        limits, live = Limits(), metrics.upstream_calls
        built = registry.build(providers, registry.Connections(self._client, limits, live))
        native_ones = registry.build_responses(
            providers,
            registry.Connections(self._client, limits, live),
            self.unsupported_urls,
        )
        spare = Model(name="spared", provider="openai", upstream="echo", fallbacks=["chat/echo"])
        return Engine(
            Routes(Models([spare], providers, {}, {}), built, responses=native_ones),
            Signer({"k1": b"s" * 32}, "k1"),
            FakeFiles({}),
            FakeMemories(),
            limits,
            Memory(),
            metrics,
            lambda: 0.0,
            adaptation(metrics),
        )

    def reload(self) -> None:
        self.engine = self._engine()

    async def ask(self, wanted: GenerateRequest | LazyRequest) -> GenerateResponse:
        return await self.engine.generate(wanted)

    async def stream(self, wanted: GenerateRequest | LazyRequest) -> list[Event]:
        async with aclosing(await self.engine.stream(wanted)) as batches:
            return [event async for batch in batches for event in batch]

    @property
    def paths(self) -> list[str]:
        return [entry.path for entry in self.log.entries]

    @property
    def sent(self) -> dict[str, Any]:
        body: dict[str, Any] = self.log.entries[-1].body
        return body


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with serving() as sandbox, Client(connect_timeout_s=60, settle_s=0) as client:
        yield Gateway(sandbox, client)


def request(
    model: str, *messages: Message, dialect: Any = RESPONSES, **fields: Any
) -> GenerateRequest:
    asked = messages or [says(USER, "hi")]
    return GenerateRequest(model=model, dialect=dialect, messages=asked, **fields)


def said(response: GenerateResponse) -> str:
    return "".join(block.text for block in response.choices[0].blocks)


def kinds(response: GenerateResponse) -> list[str]:
    return [block.WhichOneof("kind") or "" for block in response.choices[0].blocks]


def next_turn(found: GenerateResponse, output: str) -> list[Message]:
    """Return an answer as a message, and the results of its calls."""
    blocks: Sequence[Block] = found.choices[0].blocks
    results = [
        Block(tool_result=ToolResult(tool_use_id=block.tool_use.id, blocks=[Block(text=output)]))
        for block in blocks
        if block.HasField("tool_use")
    ]
    return [says(ASSISTANT, *blocks), *(says(USER, result) for result in results)]


async def test_requests_of_the_dialect_go_to_the_endpoint(gateway: Gateway) -> None:
    await gateway.ask(request("openai/echo"))
    await gateway.ask(request("openai/echo", dialect=CHAT))
    await gateway.ask(request("chat/echo"))
    assert gateway.paths == ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]


@pytest.mark.parametrize("model", ["openai/echo", "o/gpt-5"])
async def test_a_tool_loop_sends_its_reasoning_back(gateway: Gateway, model: str) -> None:
    asked = says(USER, "get weather, parallel")
    fields = {"tools": [WEATHER], "thinking": LOW}
    first = await gateway.ask(request(model, asked, **fields))
    assert kinds(first) == ["thinking", "text", "tool_use", "tool_use"]
    thought = first.choices[0].blocks[0]
    second = await gateway.ask(request(model, asked, *next_turn(first, "sunny"), **fields))
    assert said(second).count('The tool answered "sunny".') == 2
    (sent,) = [item for item in gateway.sent["input"] if item["type"] == "reasoning"]
    assert sent == {"type": "reasoning", **orjson.loads(thought.extra.json)}
    assert sent["encrypted_content"] == thought.thinking.signature
    assert gateway.sent["store"] is False


async def test_a_doubted_reasoning_item_is_left_out(gateway: Gateway) -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c3R1ZmY="}
    block = Block(extra=opaque(item))
    block.thinking.signature = item["encrypted_content"]
    turns = [says(USER, "a"), says(ASSISTANT, block, "b"), says(USER, "c")]
    answer = await gateway.ask(request("openai/echo", *turns))
    assert said(answer) == 'Sandbox echo: you said "c".'
    assert answer.route.attempts == 2
    assert [item["type"] for item in gateway.sent["input"]] == ["message"] * 3


async def test_thoughts_of_other_providers_stay_out(gateway: Gateway) -> None:
    """The gateway's signature tells them."""
    asked = says(USER, "hi")
    first = await gateway.ask(request("gemini/echo", asked, thinking=LOW))
    assert first.choices[0].blocks[0].thinking.signature.startswith("gw1.")
    await gateway.ask(request("openai/echo", asked, *next_turn(first, ""), says(USER, "and")))
    assert [item["type"] for item in gateway.sent["input"]] == ["message"] * 3
    await gateway.ask(request("gemini/echo", asked, *next_turn(first, ""), says(USER, "and")))
    assert "thought" in orjson.dumps(gateway.sent).decode()


async def test_a_plain_request_goes_and_comes_as_it_is(gateway: Gateway) -> None:
    fields = {"input": [{"role": "user", "content": "hi"}], "metadata": {"a": "b"}}

    def lazy() -> LazyRequest:
        expected = GenerateRequest(model="openai/echo", dialect=RESPONSES, takes_passthrough=True)
        return AddingLazyRequest(
            expected,
            fields,
            lambda target: target.messages.append(says(USER, "hi")),
            size=99,
            requires_official_api=True,
            has_whole_body=True,
        )

    whole = await gateway.ask(lazy())
    parsed = orjson.loads(whole.passthrough)
    assert (parsed["object"], parsed["metadata"]) == ("response", {"a": "b"})
    events = await gateway.stream(lazy())
    assert gateway.sent["input"] == fields["input"]
    sent = [orjson.loads(event) for event in natives(events)]
    assert [event["sequence_number"] for event in sent] == list(range(len(sent)))
    assert sent[-1]["type"] == "response.completed"


@pytest.mark.parametrize(
    ("fields", "is_native"),
    [
        ({}, True),
        ({"takes_passthrough": False}, False),
        ({"model": "spared"}, False),
        ({"model": "chat/echo"}, False),
        ({"stop_sequences": ["you"]}, False),
        ({"messages": [says(USER, "a"), says(ASSISTANT, "b")]}, False),
    ],
)
async def test_own_events_come_where_nothing_may_change_them(
    gateway: Gateway, fields: dict[str, Any], is_native: bool
) -> None:
    expected = request("openai/echo", takes_passthrough=True)
    for name, value in fields.items():
        expected.ClearField(name)
        expected.MergeFrom(GenerateRequest(**{name: value}))
    events = await gateway.stream(expected)
    assert any(event.native for event in events) == is_native


@pytest.mark.parametrize("stream", [False, True])
async def test_a_server_without_the_endpoint_is_asked_as_usual(
    gateway: Gateway, stream: bool
) -> None:
    expected = request("lacks/qwen3:8b", says(SYSTEM, "Be brief."), says(USER, "hi"))
    expected.takes_passthrough = True

    async def answer() -> str:
        if stream:
            return "".join(event.text for event in await gateway.stream(expected))
        return said(await gateway.ask(expected))

    assert "hi" in await answer()
    assert gateway.paths == ["/ollama/v1/responses", "/ollama/v1/chat/completions"]
    gateway.reload()
    assert "hi" in await answer()
    assert gateway.paths[2:] == ["/ollama/v1/chat/completions"]


async def test_a_model_that_is_not_there_is_no_missing_endpoint(gateway: Gateway) -> None:
    with pytest.raises(UpstreamError, match="does not have the model"):
        await gateway.ask(request("openai/none"))
    assert not gateway.unsupported_urls


async def test_refused_fields_are_learnt_and_named(gateway: Gateway) -> None:
    first = await gateway.ask(request("o/echo", temperature=0.5))
    assert (first.route.attempts, list(first.route.dropped)) == (2, ["temperature"])
    again = await gateway.ask(request("o/echo", temperature=0.5))
    assert (again.route.attempts, list(again.route.dropped)) == (1, ["temperature"])


async def test_the_provider_searches_the_web_itself(gateway: Gateway) -> None:
    own = {"type": "web_search", "search_context_size": "low"}
    web = WebTool(kind=WebTool.KIND_SEARCH)
    tool = Tool(opaque=True, extra=opaque(own), web=web)
    answer = await gateway.ask(request("openai/echo", says(USER, "web search"), tools=[tool]))
    assert gateway.sent["tools"] == [own]
    item = orjson.loads(answer.choices[0].blocks[0].opaque.json)
    assert item["type"] == "web_search_call"
    with pytest.raises(GatewayError, match=re.escape("tools[0]: chat/echo cannot search")):
        await gateway.ask(request("chat/echo", tools=[tool]))


TRANSLATED = pytest.mark.parametrize(
    "model", ["chat/echo", "deepseek/deepseek-v4-pro", "anthropic/echo", "gemini/echo"]
)


@TRANSLATED
async def test_a_conversation_is_translated_for_others(gateway: Gateway, model: str) -> None:
    extra = {"truncation": "auto", "prompt_cache_key": "k"}
    asked = says(USER, "get weather", extra=opaque({"status": "completed"}))
    fields: dict[str, Any] = {"tools": [WEATHER], "thinking": LOW, "extra": opaque(extra)}
    first = await gateway.ask(request(model, says(SYSTEM, "Be brief."), asked, **fields))
    assert [kind for kind in kinds(first) if kind != "redacted_thinking"] == [
        *("thinking", "text", "tool_use")
    ]
    assert {"extra.truncation", "extra.prompt_cache_key"} <= set(first.route.dropped)
    turns = next_turn(first, "sunny")
    second = await gateway.ask(request(model, says(SYSTEM, "Be brief."), asked, *turns, **fields))
    assert 'The tool answered "sunny".' in said(second)
    thoughts = first.choices[0].blocks[0].thinking.text
    # OpenAI's own chat completions know no thoughts of earlier turns.
    is_left_out = "messages[].blocks[].thinking" in second.route.dropped
    assert is_left_out == (model == "chat/echo")
    assert (orjson.dumps(thoughts)[1:-1] in orjson.dumps(gateway.sent)) != is_left_out


@TRANSLATED
async def test_items_and_tools_of_the_dialect_are_refused_by_path(
    gateway: Gateway, model: str
) -> None:
    output = Block(opaque=opaque({"type": "computer_call_output", "call_id": "c_1"}))
    with pytest.raises(GatewayError) as raised:
        await gateway.ask(request(model, says(USER, "a"), says(ASSISTANT, "b"), says(USER, output)))
    assert raised.value.param == "messages[2].blocks[0]"
    tool = Tool(opaque=True, extra=opaque({"type": "mcp", "server_label": "s"}))
    with pytest.raises(GatewayError) as raised:
        await gateway.ask(request(model, tools=[tool]))
    assert raised.value.param == "tools[0]"
