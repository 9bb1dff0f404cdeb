"""Signatures of Anthropic's thinking in chats, through OpenAI's SDK, in tool loops.

The server refuses thinking that it has not signed, as Anthropic does.
"""

import base64
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from aiohttp import web
from openai import AsyncOpenAI

from tests.gateway_in_process import Gateway, running_gateway

SCHEMA: Any = {"type": "object", "properties": {}}
TOOLS: Any = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]
USAGE = {"input_tokens": 1, "output_tokens": 1}


def signature_of(text: str) -> str:
    return base64.b64encode(f"signed {text}".encode()).decode()


def thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature_of(text)}


def call(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "f", "input": {}}


REDACTED = {"type": "redacted_thinking", "data": signature_of("hidden")}
ANSWERS = {
    "one": [thinking("Hm."), call(1)],
    "text": [thinking("Hm."), {"type": "text", "text": "Let me see."}, call(1)],
    "silent": [thinking(""), call(1)],
    "redacted": [thinking("Hm."), REDACTED, call(1)],
    "between": [thinking("Hm."), call(1), thinking("And."), call(2)],
}


def events_of(content: list[Any]) -> Iterator[Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    yield {"type": "message_start", "message": {**head, "content": [], "usage": USAGE}}
    for index, block in enumerate(content):
        begun, pieces = dict(block), []
        if block["type"] == "thinking":
            begun |= {"thinking": "", "signature": ""}
            text, signature = block["thinking"], block["signature"]
            pieces = [{"type": "thinking_delta", "thinking": letter} for letter in text]
            pieces.append({"type": "signature_delta", "signature": signature})
        elif block["type"] == "text":
            begun["text"] = ""
            pieces = [{"type": "text_delta", "text": letter} for letter in block["text"]]
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for piece in pieces:
            yield {"type": "content_block_delta", "index": index, "delta": piece}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": USAGE}
    yield {"type": "message_stop"}


def is_signed(block: Any) -> bool:
    match block:
        case {"type": "thinking", "thinking": text, "signature": signature}:
            return bool(signature == signature_of(text))
    return True


def server(bodies: list[Any], answer: list[Any]) -> web.Application:
    async def messages(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        said = [one["content"] for one in body["messages"] if one["role"] == "assistant"]
        if any(not is_signed(block) for content in said for block in content):
            error = {"type": "invalid_request_error", "message": "Invalid `signature`"}
            return web.json_response({"type": "error", "error": error}, status=400)
        content = [{"type": "text", "text": "Done."}] if said else answer
        if body.get("stream"):
            text = "".join(f"data: {orjson.dumps(one).decode()}\n\n" for one in events_of(content))
            return web.Response(text=text, content_type="text/event-stream")
        reason = "end_turn" if said else "tool_use"
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        whole = {**head, "content": content, "stop_reason": reason, "usage": USAGE}
        return web.json_response(whole)

    async def chat(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        message = {"role": "assistant", "content": "Done."}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return web.json_response({"id": "1", "model": "m", "choices": choices, "usage": usage})

    app = web.Application()
    app.router.add_post("/v1/messages", messages)
    app.router.add_post("/v1/chat/completions", chat)
    return app


def everything(message: dict[str, Any]) -> dict[str, Any]:
    return message


def details_alone(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message of a client that keeps what OpenRouter's clients keep."""
    names = ("role", "content", "reasoning_details")
    calls = [
        {name: value for name, value in call.items() if name != "extra_content"}
        for call in message["tool_calls"]
    ]
    return {**{name: message.get(name) for name in names}, "tool_calls": calls}


def calls_alone(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message of a client that keeps nothing but calls, with all their fields."""
    return {name: message.get(name) for name in ("role", "content", "tool_calls")}


async def loop(gateway: Gateway, kept: Any, stream: bool, then: str) -> dict[str, Any]:
    """Run a loop whose second request asks another model; return the first answer's message."""
    async with AsyncOpenAI(
        base_url=f"{gateway.url}/beta/v1", api_key=gateway.key, max_retries=0
    ) as client:
        fields: Any = {"model": "anthropic/m", "tools": TOOLS}
        asked: Any = {"role": "user", "content": "Go"}
        if stream:
            async with client.chat.completions.stream(**fields, messages=[asked]) as events:
                completion: Any = await events.get_final_completion()
        else:
            completion = await client.chat.completions.create(**fields, messages=[asked])
        message: dict[str, Any] = completion.choices[0].message.model_dump(exclude_none=True)
        for one in message["tool_calls"]:
            one["function"].pop("parsed_arguments", None)
            one.pop("index", None)
        results = [
            {"role": "tool", "tool_call_id": one["id"], "content": "42"}
            for one in message["tool_calls"]
        ]
        again: Any = [asked, kept(message), *results]
        last: Any = await client.chat.completions.create(
            **{**fields, "model": then}, messages=again
        )
        assert last.choices[0].message.content == "Done."
    return message


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kept", [everything, details_alone, calls_alone])
@pytest.mark.parametrize("name", ANSWERS)
async def test_signed_thinking_goes_back_to_its_server(tmp_path, name: str, kept: Any, stream):
    bodies: list[Any] = []
    answer = ANSWERS[name]
    if name == "between" and kept is details_alone:
        # Details have no place among calls: all of them precede the message.
        expected = [answer[0], answer[2], answer[1], answer[3]]
    else:
        expected = answer
    async with running_gateway(tmp_path, server(bodies, answer)) as gateway:
        message = await loop(gateway, kept, stream, "anthropic/m")
    assert len(bodies) == 2, "nothing was refused"
    assert bodies[1]["messages"][1]["content"] == expected
    details = [one for one in message["reasoning_details"] if one["type"] == "reasoning.text"]
    thoughts = [block for block in answer if block["type"] == "thinking"]
    assert [one["signature"] for one in details] == [one["signature"] for one in thoughts]
    assert {one["format"] for one in message["reasoning_details"]} == {"anthropic-claude-v1"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_no_other_server_is_sent_the_signature(tmp_path, stream):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, server(bodies, ANSWERS["text"])) as gateway:
        await loop(gateway, everything, stream, "openai/m")
    assert bodies[1]["messages"][1]["reasoning_content"] == "Hm."
    sent = orjson.dumps(bodies[1]).decode()
    assert signature_of("Hm.") not in sent
    assert "extra_content" not in sent and "reasoning_details" not in sent


async def test_an_answer_without_thinking_has_no_field_of_it(tmp_path):
    async with running_gateway(tmp_path, server([], [call(1)])) as gateway:
        message = await loop(gateway, everything, False, "anthropic/m")
    assert message.keys() == {"role", "tool_calls"}
    assert "extra_content" not in message["tool_calls"][0]


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_details": "x"},
        {"reasoning_details": [1, {"type": "reasoning.text", "text": 1, "signature": "s"}]},
        {"extra_content": {"anthropic": {"thinking_blocks": [1, {"type": "thinking"}]}}},
        {"extra_content": {"anthropic": 1}},
        {"reasoning_details": [{"type": "reasoning.text", "text": "a", "signature": "details:{"}]},
    ],
)
async def test_malformed_thinking_is_left_out(tmp_path, fields):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, server(bodies, ANSWERS["one"])) as gateway:
        url = f"{gateway.url}/beta/v1/chat/completions"
        messages = [
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": "a", **fields},
        ]
        for model in ("openai/m", "anthropic/m"):
            body = {"model": model, "messages": [*messages, {"role": "user", "content": "Go"}]}
            async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
                assert answer.status == 200, await answer.text()
