"""A chat's reasoning, which goes back to providers that want it in their tool loops."""

from typing import Any

import orjson
from aiohttp import web

from tests.gateway_in_process import running_gateway

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOLD = "The `reasoning_content` in the thinking mode must be passed back to the API."


def upstream(bodies: list[Any]) -> web.Application:
    """Answer as DeepSeek does: a tool loop without the thoughts that led to it is refused."""

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        said = [message for message in body["messages"] if message["role"] == "assistant"]
        if any("reasoning_content" not in message for message in said):
            error = {"message": TOLD, "type": "invalid_request_error", "param": None}
            return web.json_response({"error": error}, status=400)
        message = {"role": "assistant", "content": "Done.", "reasoning_content": "So."}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return web.json_response({"id": "1", "model": "m", "choices": choices, "usage": usage})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    return app


async def test_a_chats_tool_loop_keeps_its_reasoning(tmp_path):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, upstream(bodies)) as gateway:
        messages = [
            {"role": "user", "content": "Go"},
            {"role": "assistant", "reasoning_content": "Hm.", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
        ]
        body = {"model": "openai/deepseek-chat", "messages": messages, "tools": TOOLS}
        url = f"{gateway.url}/beta/v1/chat/completions"
        async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
            assert answer.status == 200, await answer.text()
            (choice,) = (await answer.json())["choices"]
    assert choice["message"]["reasoning_content"] == "So."
    assert bodies[0]["messages"][1]["reasoning_content"] == "Hm."


async def test_thinking_that_the_gateway_signed_goes_back_too(tmp_path):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, upstream(bodies)) as gateway:
        url = f"{gateway.url}/beta/v1/messages"

        async def ask(messages: list[Any]) -> Any:
            body = {"model": "openai/deepseek-chat", "max_tokens": 50, "messages": messages}
            async with gateway.http.post(url, json=body, headers=gateway.api_key()) as answer:
                assert answer.status == 200, await answer.text()
                return orjson.loads(await answer.read())

        first = [{"role": "user", "content": "Go"}]
        told = await ask(first)
        assert [block["type"] for block in told["content"]] == ["thinking", "text"]
        again = {"role": "assistant", "content": told["content"]}
        await ask([*first, again, {"role": "user", "content": "And?"}])
    assert bodies[1]["messages"][1]["reasoning_content"] == "So."
