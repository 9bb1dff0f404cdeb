"""Servers that refuse calls without the thinking before them, or thinking with a forced call."""

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway

DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."
KIMI = "thinking is enabled but reasoning_content is missing in assistant tool call message at 1"
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SCHEMA = {"type": "object", "properties": {}}
Make = Callable[[str], Any]


def plainly(words: str) -> Any:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": words}}


def in_param(words: str) -> Any:
    """Return the error of MiMo."""
    error = {"code": "400", "message": "Param Incorrect", "param": words, "type": ""}
    return {"error": error}


def through_a_proxy(words: str) -> Any:
    """Return the error of OpenRouter for one of the server behind it."""
    metadata = {"raw": f'{{"error":{{"message":"{words}"}}}}', "provider_name": "Moonshot AI"}
    return {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}


def has_thoughts(message: Any) -> bool:
    content = message["content"]
    if isinstance(content, list):
        return bool(content[0]["type"] == "thinking" and content[0]["thinking"])
    return bool(message.get("reasoning_content"))


def server(bodies: list[Any], error: Any) -> web.Application:
    def refuses(body: Any) -> bool:
        bodies.append(body)
        messages = [message for message in body["messages"] if message["role"] == "assistant"]
        return not all(map(has_thoughts, messages))

    async def chat(request: web.Request) -> web.Response:
        if refuses(await request.json()):
            return web.json_response(error, status=400)
        message = {"role": "assistant", "content": "Done."}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return web.json_response({"id": "1", "model": "m", "choices": choices, "usage": usage})

    async def messages(request: web.Request) -> web.Response:
        if refuses(await request.json()):
            return web.json_response(error, status=400)
        return web.json_response(done())

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_post("/v1/messages", messages)
    return app


def done() -> Any:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    content = [{"type": "text", "text": "Done."}]
    return {**head, "content": content, "stop_reason": "end_turn", "usage": usage}


async def ask(gateway: Gateway, path: str, body: Any) -> tuple[Any, str]:
    url = f"{gateway.url}/beta/v1/{path}"
    keys = gateway.api_key() if path == "messages" else gateway.bearer()
    async with gateway.http.post(url, json=body, headers=keys) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json(), answer.headers.get("x-gateway-dropped", "")


def by_chat(model: str) -> tuple[str, Any]:
    messages: list[Any] = [{"role": "user", "content": "Go"}]
    messages.append({"role": "assistant", "content": None, "tool_calls": [CALL]})
    messages.append({"role": "tool", "tool_call_id": "c1", "content": "42"})
    messages += [{"role": "assistant", "content": "So."}, {"role": "user", "content": "And?"}]
    return "chat/completions", {"model": model, "messages": messages}


def by_messages(model: str) -> tuple[str, Any]:
    use = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "42"}
    messages: list[Any] = [{"role": "user", "content": "Go"}]
    messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    messages += [{"role": "assistant", "content": "So."}, {"role": "user", "content": "And?"}]
    return "messages", {"model": model, "max_tokens": 50, "messages": messages}


def by_responses(model: str) -> tuple[str, Any]:
    items: list[Any] = [{"role": "user", "content": "Go"}]
    items.append({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"})
    items.append({"type": "function_call_output", "call_id": "c1", "output": "42"})
    items += [{"role": "assistant", "content": "So."}, {"role": "user", "content": "And?"}]
    return "responses", {"model": model, "input": items, "store": False}


@pytest.mark.parametrize("by", [by_chat, by_messages, by_responses])
@pytest.mark.parametrize(
    ("kind", "words", "make"),
    [
        ("openai", DEEPSEEK, plainly),
        ("openai", KIMI, plainly),
        ("openai", DEEPSEEK, in_param),
        ("openai", KIMI, through_a_proxy),
        ("anthropic", DEEPSEEK.replace("reasoning_content", "content[].thinking"), plainly),
        ("anthropic", KIMI, plainly),
        ("anthropic", DEEPSEEK, in_param),
    ],
)
async def test_missing_thoughts_are_replaced(tmp_path, kind: str, words: str, make: Make, by: Any):
    bodies: list[Any] = []
    path, body = by(f"{kind}/m")
    async with running_gateway(tmp_path, server(bodies, make(words))) as gateway:
        for _ in range(2):
            await ask(gateway, path, body)
    assert len(bodies) == 3, "it is remembered"


ADAPTIVE = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}


async def test_refused_thinking_with_a_forced_call_is_left_out(tmp_path):
    bodies: list[Any] = []

    async def messages(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        if "thinking" in body and body.get("tool_choice", {}).get("type") == "any":
            words = "Thinking may not be enabled when tool_choice forces tool use."
            return web.json_response(plainly(words), status=400)
        return web.json_response(done())

    app = web.Application()
    app.router.add_post("/v1/messages", messages)
    sent_messages = [{"role": "user", "content": "Go"}]
    body: Any = {"model": "anthropic/m", "max_tokens": 5000, "messages": sent_messages, **ADAPTIVE}
    body["tools"] = [{"name": "f", "input_schema": SCHEMA}]
    async with running_gateway(tmp_path, app) as gateway:
        for _ in range(2):
            _, dropped = await ask(gateway, "messages", {**body, "tool_choice": {"type": "any"}})
            assert dropped == "thinking"
        await ask(gateway, "messages", body)
    kinds = [body.get("thinking", {}).get("type") for body in bodies]
    assert kinds == ["adaptive", None, None, "adaptive"]
    efforts = [body["output_config"]["effort"] for body in bodies]
    assert efforts == ["max", "high", "high", "max"]
    assert all("tool_choice" in body for body in bodies[:3])


@pytest.mark.parametrize("effort", ["high", "low"])
async def test_an_effort_with_a_forced_call_is_sent_without_thinking(tmp_path, effort: str):
    bodies: list[Any] = []

    async def messages(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        return web.json_response(done())

    app = web.Application()
    app.router.add_post("/v1/messages", messages)
    tool = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
    body = {"model": "anthropic/claude-opus-4-7", "messages": [{"role": "user", "content": "Go"}]}
    body |= {"tools": [tool], "reasoning_effort": effort, "tool_choice": "required"}
    async with running_gateway(tmp_path, app) as gateway:
        _, dropped = await ask(gateway, "chat/completions", body)
    assert "thinking" not in bodies[0]
    assert bodies[0]["tool_choice"] == {"type": "any"}
    assert bodies[0]["output_config"] == {"effort": effort}
    assert dropped == "reasoning_effort"
