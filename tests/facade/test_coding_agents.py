"""Requests of coding agents to `/coding`, over HTTP, in Anthropic's dialect and in OpenAI's."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]

MODELS = pytest.mark.parametrize("model", ["anthropic/claude-haiku-4-5", "openai/m"])
BILLING = "x-anthropic-billing-header: cc_version=2.1.117.48f; cc_entrypoint=cli; cch=71fea;"
SEARCH = {"name": "ToolSearch", "input_schema": {"type": "object"}}
READ = {"name": "Read", "input_schema": {"type": "object"}, "defer_loading": True}


@dataclass
class Agent:
    """A coding agent, and what the provider was sent for it."""

    gateway: Gateway
    bodies: list[Json] = field(default_factory=list)

    async def ask(
        self, model: str, headers: dict[str, str] | None = None, **fields: Any
    ) -> tuple[Json, str]:
        """Return what the provider was sent, and what of the request was left out."""
        messages = [{"role": "user", "content": "Go"}]
        body = {"model": model, "max_tokens": 100, "messages": messages, **fields}
        credentials = headers or {"authorization": f"Bearer {self.gateway.key}"}
        url = f"{self.gateway.url}/coding/v1/messages"
        async with self.gateway.http.post(url, json=body, headers=credentials) as answer:
            assert answer.status == 200, await answer.text()
            return self.bodies[-1], answer.headers.get("x-gateway-dropped", "")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agent(tmp_path_factory) -> AsyncIterator[Agent]:
    bodies: list[Json] = []

    async def messages(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        answer |= {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
        return web.json_response({**answer, "usage": {"input_tokens": 1, "output_tokens": 1}})

    async def chat(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}}
        choice["finish_reason"] = "stop"
        return web.json_response({"id": "c", "model": "m", "choices": [choice]})

    app = web.Application()
    app.router.add_post("/v1/messages", messages)
    app.router.add_post("/v1/chat/completions", chat)
    async with running_gateway(tmp_path_factory.mktemp("gateway"), app) as gateway:
        yield Agent(gateway, bodies)


@MODELS
async def test_thinking_between_tools_may_exceed_max_tokens(agent: Agent, model: str) -> None:
    """Qwen Code asks so of models that it does not know."""
    headers = {"authorization": f"Bearer {agent.gateway.key}"}
    headers["anthropic-beta"] = "interleaved-thinking-2025-05-14"
    thinking = {"type": "enabled", "budget_tokens": 32_000}
    # The thinking of a tool loop makes the request one that the gateway has to complete.
    called = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}
    messages = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [thought, called]},
        {"role": "user", "content": [result]},
    ]
    fields: Json = {"max_tokens": 8_000, "thinking": thinking}
    await agent.ask(model, headers, **fields, messages=messages)
    sent, _ = await agent.ask(model, headers, **fields)
    if model.startswith("anthropic/"):
        assert (sent["max_tokens"], sent["thinking"]) == (8_000, thinking)
    else:
        assert sent["reasoning_effort"] == "high"


@MODELS
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("diagnostics", {"previous_message_id": None}),
        ("never_heard_of", [{"a": 1}]),
    ],
)
async def test_fields_without_a_name_go_on_or_are_named(
    agent: Agent, model: str, name: str, value: Any
):
    sent, dropped = await agent.ask(model, **{name: value})
    if model.startswith("anthropic"):
        assert (sent[name], dropped) == (value, "")
    else:
        assert name not in sent
        assert dropped == name


@MODELS
async def test_fallbacks_are_steps_of_the_gateway(agent: Agent, model: str):
    sent, dropped = await agent.ask(model, fallbacks=[{"model": "claude-sonnet-4-5"}])
    assert "fallbacks" not in sent
    assert (sent["model"], dropped) == (model.partition("/")[2], "")


async def test_compaction_is_refused_where_it_is_unknown(agent: Agent):
    sent, dropped = await agent.ask("anthropic/claude-haiku-4-5", compaction={"enabled": True})
    assert (sent["compaction"], dropped) == ({"enabled": True}, "")
    body = {"model": "openai/m", "max_tokens": 50, "compaction": {"enabled": True}}
    body |= {"messages": [{"role": "user", "content": "Hi"}]}
    url, count = f"{agent.gateway.url}/coding/v1/messages", len(agent.bodies)
    async with agent.gateway.http.post(url, json=body, headers=agent.gateway.api_key()) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["code"], error["param"]) == (400, "unsupported", "compaction")
    assert len(agent.bodies) == count


@MODELS
async def test_a_comparison_with_an_earlier_request_is_left_out(agent: Agent, model: str):
    """The earlier request may be another caller's."""
    sent, dropped = await agent.ask(model, diagnostics={"previous_message_id": "msg_1"})
    assert "diagnostics" not in sent
    assert dropped == "diagnostics"


@MODELS
async def test_a_search_for_tools_is_answered_with_their_names(agent: Agent, model: str):
    found = [{"type": "tool_reference", "tool_name": "Read"}]
    messages = [
        {"role": "user", "content": "Go"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": found}],
        },
    ]
    sent, _ = await agent.ask(model, messages=messages, tools=[SEARCH, READ])
    if model.startswith("anthropic"):
        assert sent["messages"] == messages
    else:
        assert "Read" in sent["messages"][2]["content"]


async def test_more_tokens_than_a_model_writes_are_lowered(agent: Agent):
    sent, dropped = await agent.ask("anthropic/claude-opus-4-1", max_tokens=32_001)
    assert (sent["max_tokens"], dropped) == (32_000, "max_tokens")


async def test_one_key_may_come_in_both_headers(agent: Agent):
    key = agent.gateway.key
    await agent.ask("openai/m", {"authorization": f"Bearer {key}", "x-api-key": key})


async def test_other_providers_get_names_that_they_take(agent: Agent):
    name = "mcp__" + "a" * 80
    sent, dropped = await agent.ask(
        "openai/m",
        metadata={"user_id": "user_" + "a" * 145},
        tools=[{"name": name, "input_schema": {"type": "object"}}],
        system=[{"type": "text", "text": BILLING}, {"type": "text", "text": "Be brief."}],
    )
    assert len(sent["user"]) <= 64
    assert len(sent["tools"][0]["function"]["name"]) <= 64
    assert sent["messages"][0]["content"] == "Be brief."
    assert dropped == "x-anthropic-billing-header"


async def test_billing_headers_are_not_sent_to_anthropic_servers(agent: Agent):
    system = [{"type": "text", "text": BILLING}, {"type": "text", "text": "Be brief."}]
    sent, dropped = await agent.ask("anthropic/claude-haiku-4-5", system=system)
    assert (sent["system"], dropped) == ("Be brief.", "x-anthropic-billing-header")
