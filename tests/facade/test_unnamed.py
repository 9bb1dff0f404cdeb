"""Unknown fields of a provider's answer reach the caller, and go back to the provider.

Over HTTP, in two turns of a tool loop.
"""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from aiohttp import ClientResponse, web

from tests.gateway_in_process import Gateway, running_gateway

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
SIGNED = {"google": {"thought_signature": "c2ln"}}
DETAIL = {"type": "reasoning.text", "index": 0, "format": "f", "text": "Hm.", "signature": "s"}
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "f", "arguments": "{}", "v": 1},
    "extra_content": SIGNED,
}
MESSAGE = {
    "role": "assistant",
    "content": "Look:",
    "reasoning": "Hm.",
    "reasoning_details": [DETAIL],
    "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example"}}],
    "images": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}],
    "tool_calls": [CALL],
}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "cost": 0.25}
UUID = "0b6a2c1e-7d1f-4b0e-9a55-0c9d7f1c2a3b"


def chunks() -> Iterator[dict[str, Any]]:
    """Return the message as a stream tells it."""
    head = {"id": "gen-1", "model": "m", "object": "chat.completion.chunk", "provider": "p"}
    told: dict[str, Any] = dict(MESSAGE)
    function = {"name": "f", "arguments": "", "v": 1}
    call = {**CALL, "index": 0, "function": function}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        {"reasoning": "Hm.", "reasoning_details": told["reasoning_details"]},
        *({"content": letter} for letter in told["content"]),
        {"annotations": told["annotations"]},
        {"images": told["images"]},
        {"tool_calls": [call]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    ]
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None, "native_finish_reason": None}
        yield {**head, "choices": [choice]}
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls", "native_finish_reason": "STOP"}
    yield {**head, "choices": [end], "timings": {"ms": 1}}
    yield {**head, "choices": [], "usage": USAGE}


def upstream(bodies: list[Any]) -> web.Application:
    async def chat(request: web.Request) -> web.StreamResponse:
        bodies.append(body := await request.json())
        if body.get("stream"):
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            for chunk in chunks():
                await response.write(b"data: %b\n\n" % orjson.dumps(chunk))
            await response.write(b"data: [DONE]\n\n")
            return response
        choice = {"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}
        choice["native_finish_reason"] = "STOP"
        answer = {"id": "gen-1", "model": "m", "object": "chat.completion", "choices": [choice]}
        return web.json_response({**answer, "usage": USAGE, "provider": "p", "timings": {"ms": 1}})

    async def messages(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        thinking = {"type": "thinking", "thinking": "Hm.", "signature": signature_of(bodies)}
        call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        usage = {"input_tokens": 1, "output_tokens": 2}
        answer |= {"content": [thinking, call], "stop_reason": "tool_use", "usage": usage}
        return web.json_response(answer)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_post("/v1/messages", messages)
    return app


def signature_of(bodies: list[Any]) -> str:
    """Return how the server signs: the caller's wish, in a field that nobody here knows."""
    signature: str = bodies[0]["metadata"]["user_id"]
    return "" if signature == "nothing" else signature


async def chunks_of(answer: ClientResponse) -> list[dict[str, Any]]:
    lines = (await answer.text()).split("\n\n")
    return [orjson.loads(line[len("data: ") :]) for line in lines if line.startswith("data: {")]


def put_together(told: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the message of a stream, and all else that its chunks say."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    beside: dict[str, Any] = {}
    for chunk in told:
        beside |= {name: value for name, value in chunk.items() if value and name != "choices"}
        for choice in chunk["choices"]:
            beside |= {n: v for n, v in choice.items() if v and n not in ("index", "delta")}
            for name, value in choice["delta"].items():
                if name == "tool_calls":
                    (piece,) = value
                    (call,) = message.setdefault("tool_calls", [piece])
                    if call is not piece:
                        call["function"]["arguments"] += piece["function"]["arguments"]
                elif isinstance(value, str) and name != "role":
                    message[name] = message.get(name, "") + value
                elif isinstance(value, list):
                    message[name] = message.get(name, []) + value
    return message, beside


async def ask(gateway: Gateway, body: dict[str, Any], headers: dict[str, str]) -> ClientResponse:
    path = "messages" if "max_tokens" in body else "chat/completions"
    url = f"{gateway.url}/beta/v1/{path}"
    answer = await gateway.http.post(url, json=body, headers=headers)
    assert answer.status == 200, await answer.text()
    return answer


@pytest.mark.parametrize("stream", [False, True])
async def test_all_that_an_answer_says_reaches_a_chat_and_goes_back(tmp_path, stream):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, upstream(bodies)) as gateway:
        first = {"role": "user", "content": "Go"}
        body = {"model": "openai/m", "messages": [first], "tools": TOOLS}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        answer = await ask(gateway, body, gateway.bearer())
        if stream:
            message, beside = put_together(await chunks_of(answer))
            message["tool_calls"][0].pop("index")
        else:
            whole = await answer.json()
            (choice,) = whole["choices"]
            message, beside = choice["message"], {**whole, **choice}
        assert {name: message[name] for name in MESSAGE} == MESSAGE
        assert message["reasoning_content"] == "Hm."
        assert (beside["native_finish_reason"], beside["provider"]) == ("STOP", "p")
        assert (beside["usage"]["cost"], beside["timings"]) == (0.25, {"ms": 1})
        result = {"role": "tool", "tool_call_id": "c1", "content": "42"}
        await ask(gateway, {**body, "messages": [first, message, result]}, gateway.bearer())
    sent = bodies[1]["messages"][1]
    assert {name: sent[name] for name in MESSAGE} == MESSAGE


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_remembered_says_as_much(tmp_path, stream):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, upstream(bodies)) as gateway:
        body = {"model": "openai/m", "messages": [{"role": "user", "content": "Go"}]}
        body |= {"memory_id": "m", "tools": TOOLS, "stream": stream}
        answer = await ask(gateway, body, gateway.bearer())
        if stream:
            message, _ = put_together(await chunks_of(answer))
            message["tool_calls"][0].pop("index")
        else:
            message = (await answer.json())["choices"][0]["message"]
        assert {name: message[name] for name in MESSAGE} == MESSAGE
        # The signature of a call is remembered with it.
        result = {"role": "tool", "tool_call_id": "c1", "content": "42"}
        await ask(gateway, {**body, "messages": [result]}, gateway.bearer())
    (call,) = bodies[1]["messages"][1]["tool_calls"]
    assert call["extra_content"] == SIGNED


async def test_a_same_dialect_refusal_keeps_its_code_and_param(tmp_path):
    error = {"message": "no", "type": "invalid_request_error"}
    error |= {"code": "invalid_value", "param": "messages[0].content[1]"}

    async def refuse(request: web.Request) -> web.Response:
        return web.json_response({"error": error}, status=400)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", refuse)
    async with running_gateway(tmp_path, app) as gateway:
        body = {"model": "openai/m", "messages": [{"role": "user", "content": "Go"}]}
        url = f"{gateway.url}/beta/v1"
        asked = gateway.http.post(f"{url}/chat/completions", json=body, headers=gateway.bearer())
        async with asked as answer:
            told = (await answer.json())["error"]
        assert (told["code"], told["param"]) == ("invalid_value", "messages[0].content[1]")
        body["max_tokens"] = 9
        asked = gateway.http.post(f"{url}/messages", json=body, headers=gateway.api_key())
        async with asked as answer:
            told = (await answer.json())["error"]
        assert told["code"] == "upstream_rejected" and "param" not in told


async def test_of_the_same_answer_messages_show_what_they_can(tmp_path):
    async with running_gateway(tmp_path, upstream([])) as gateway:
        body = {
            "model": "openai/m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "Go"}],
        }
        answer_body = await (await ask(gateway, body, gateway.api_key())).json()
    kinds = [block["type"] for block in answer_body["content"]]
    assert kinds == ["thinking", "text", "redacted_thinking", "tool_use"]  # Gemini's signature
    assert answer_body["content"][1]["text"] == "Look:![image](https://a.example/b.png)"


@pytest.mark.parametrize("signature", [UUID, "nothing"])
async def test_messages_return_thinking_for_any_signature_scheme(tmp_path, signature):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, upstream(bodies)) as gateway:
        first = {"role": "user", "content": "Go"}
        body = {"model": "anthropic/m", "max_tokens": 9, "messages": [first]}
        body["metadata"] = {"user_id": signature}
        answer_body = await (await ask(gateway, body, gateway.api_key())).json()
        assert [block["type"] for block in answer_body["content"]] == ["thinking", "tool_use"]
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"}
        again = [{"role": "assistant", "content": answer_body["content"]}]
        again.append({"role": "user", "content": [result]})
        await ask(gateway, {**body, "messages": [first, *again]}, gateway.api_key())
    thinking = bodies[1]["messages"][1]["content"][0]
    expected = "" if signature == "nothing" else signature
    assert thinking == {"type": "thinking", "thinking": "Hm.", "signature": expected}


@pytest.mark.parametrize("signature", [UUID, "nothing"])
async def test_chats_give_a_server_its_thinking_back_too(tmp_path, signature):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, upstream(bodies)) as gateway:
        first = {"role": "user", "content": "Go"}
        body = {"model": "anthropic/m", "messages": [first], "user": signature, "tools": TOOLS}
        (choice,) = (await (await ask(gateway, body, gateway.bearer())).json())["choices"]
        assert choice["message"]["reasoning_content"] == "Hm."
        result = {"role": "tool", "tool_call_id": "toolu_1", "content": "42"}
        again = [first, choice["message"], result]
        await ask(gateway, {**body, "messages": again}, gateway.bearer())
    thinking = bodies[1]["messages"][1]["content"][0]
    expected = "" if signature == "nothing" else signature
    assert thinking == {"type": "thinking", "thinking": "Hm.", "signature": expected}
