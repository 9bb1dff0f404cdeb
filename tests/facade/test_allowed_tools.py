"""A choice among some of the tools, over providers of every dialect."""

from typing import Any

import pytest

from tests.gateway_in_process import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = ["openai/echo", "anthropic/echo", "gemini/echo", "sandbox/echo"]
NAMES = ("first", "second")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


async def post(gateway: Gateway, path: str, body: dict[str, Any]) -> Any:
    async with gateway.http.post(
        f"{gateway.url}/beta/v1{path}", json=body, headers=gateway.bearer()
    ) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


@pytest.mark.parametrize("model", MODELS)
async def test_responses_call_an_allowed_tool(gateway: Gateway, model: str) -> None:
    tools = [{"type": "function", "name": name, "parameters": SCHEMA} for name in NAMES]
    allowed = [{"type": "function", "name": "second"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": allowed}
    body = {"model": model, "input": "Hello", "tools": tools, "tool_choice": choice}
    answer = await post(gateway, "/responses", body)
    assert [item["name"] for item in answer["output"] if item["type"] == "function_call"] == [
        "second"
    ]
    assert answer["tool_choice"] == choice
    assert [tool["name"] for tool in answer["tools"]] == [*NAMES]


@pytest.mark.parametrize("model", MODELS)
async def test_chats_call_an_allowed_tool(gateway: Gateway, model: str) -> None:
    functions = [{"name": name, "parameters": SCHEMA} for name in NAMES]
    tools = [{"type": "function", "function": function} for function in functions]
    allowed = [{"type": "function", "function": {"name": "second"}}]
    limits = {"mode": "required", "tools": allowed}
    choice = {"type": "allowed_tools", "allowed_tools": limits}
    messages = [{"role": "user", "content": "Hello"}]
    body = {"model": model, "messages": messages, "tools": tools, "tool_choice": choice}
    answer = await post(gateway, "/chat/completions", body)
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "second"
