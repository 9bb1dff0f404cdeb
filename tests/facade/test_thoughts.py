"""A chat's reasoning, which goes back to providers that want it in their tool loops."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from aiohttp import web
from anthropic import AsyncAnthropic

from tests.gateway_in_process import running_gateway

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOLD = "The `reasoning_content` in the thinking mode must be passed back to the API."


def upstream(bodies: list[Any]) -> web.Application:
    """Answer as DeepSeek does: a tool loop without the thoughts that led to it is refused."""

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        messages = [message for message in body["messages"] if message["role"] == "assistant"]
        if any("reasoning_content" not in message for message in messages):
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
        answer_body = await ask(first)
        assert [block["type"] for block in answer_body["content"]] == ["thinking", "text"]
        again = {"role": "assistant", "content": answer_body["content"]}
        await ask([*first, again, {"role": "user", "content": "And?"}])
    assert bodies[1]["messages"][1]["reasoning_content"] == "So."


def messages_server(bodies: list[Any]) -> web.Application:
    """Answer as DeepSeek does in Anthropic's dialect: with an empty thought before a call."""
    content = [
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
    ]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    head |= {"stop_reason": None, "stop_sequence": None}
    usage = {"input_tokens": 1, "output_tokens": 1}

    def events() -> Iterator[Any]:
        yield {"type": "message_start", "message": {**head, "content": [], "usage": usage}}
        for index, block in enumerate(content):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage}
        yield {"type": "message_stop"}

    async def messages(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        if body.get("stream"):
            text = "".join(f"data: {orjson.dumps(event).decode()}\n\n" for event in events())
            return web.Response(text=text, content_type="text/event-stream")
        whole = {**head, "content": content, "stop_reason": "tool_use", "usage": usage}
        return web.json_response(whole)

    app = web.Application()
    app.router.add_post("/v1/messages", messages)
    return app


@pytest.mark.parametrize("stream", [False, True])
async def test_an_empty_thought_goes_back_to_its_provider(tmp_path, stream):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, messages_server(bodies)) as gateway:
        key = gateway.key
        async with AsyncAnthropic(base_url=f"{gateway.url}/beta", api_key=key) as client:
            fields: Any = {"model": "anthropic/m", "max_tokens": 50}
            fields["tools"] = [{"name": "f", "input_schema": {"type": "object"}}]
            asked: Any = {"role": "user", "content": "Go"}
            if stream:
                async with client.messages.stream(**fields, messages=[asked]) as events:
                    answer = await events.get_final_message()
            else:
                answer = await client.messages.create(**fields, messages=[asked])
            content: Any = [block.model_dump(exclude_none=True) for block in answer.content]
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"}
            again: Any = [
                asked,
                {"role": "assistant", "content": content},
                {"role": "user", "content": [result]},
            ]
            await client.messages.create(**fields, messages=again)
    sent = bodies[1]["messages"][1]["content"]
    assert [block["type"] for block in sent] == ["thinking", "tool_use"]
    assert sent[0] == {"type": "thinking", "thinking": "", "signature": ""}


async def test_a_response_carries_an_empty_thought_back(tmp_path):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, messages_server(bodies)) as gateway:
        url = f"{gateway.url}/beta/v1/responses"
        fields = {"model": "anthropic/m", "include": ["reasoning.encrypted_content"]}
        fields |= {"store": False, "tools": [{"type": "function", "name": "f", "parameters": {}}]}

        async def ask(items: list[Any]) -> Any:
            body = {**fields, "input": items}
            async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
                assert answer.status == 200, await answer.text()
                return await answer.json()

        asked = {"role": "user", "content": "Go"}
        output = (await ask([asked]))["output"]
        result = {"type": "function_call_output", "call_id": "toolu_1", "output": "42"}
        await ask([asked, *output, result])
    sent = bodies[1]["messages"][1]["content"]
    assert [block["type"] for block in sent] == ["thinking", "tool_use"]


async def test_an_empty_thought_of_a_caller_is_left_out(tmp_path):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, messages_server(bodies)) as gateway:
        said = [{"type": "thinking", "thinking": "", "signature": ""}]
        messages = [
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": [*said, {"type": "text", "text": "Yes."}]},
            {"role": "user", "content": "Go on"},
        ]
        body = {"model": "anthropic/m", "max_tokens": 50, "messages": messages}
        url = f"{gateway.url}/beta/v1/messages"
        async with gateway.http.post(url, json=body, headers=gateway.api_key()) as answer:
            assert answer.status == 200, await answer.text()
    assert bodies[0]["messages"][1]["content"] == "Yes."
