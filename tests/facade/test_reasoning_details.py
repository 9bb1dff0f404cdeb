"""Signed `reasoning_details` of a server behind messages and responses, in tool loops.

The server refuses details that are missing or changed, as OpenRouter does for Anthropic's models.
"""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from aiohttp import web
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.gateway_in_process import Gateway, running_gateway

TEXT = {"type": "reasoning.text", "text": "Hm. So.", "signature": "U0lH", "index": 0}
ALONE = [{**TEXT, "format": "anthropic-claude-v1"}]
TWICE = [*ALONE, {"type": "reasoning.text", "text": "Yes.", "signature": "U1VN", "index": 1}]
SEALED = {"type": "reasoning.encrypted", "data": "ZGF0YQ==", "id": "c1", "index": 0}
SUMMED = [{"type": "reasoning.summary", "summary": "Hm. So.", "index": 0}, SEALED]
SILENT = [SEALED]
LATE = "late"
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SCHEMA: Any = {"type": "object", "properties": {}}


def pieces_of(details: list[Any]) -> Iterator[Any]:
    """Return details as a stream sends them: texts in pieces, then their signature."""
    for detail in details:
        name = "summary" if "summary" in detail else "text"
        beginning = {key: detail[key] for key in ("type", "format", "index") if key in detail}
        if name not in detail:
            yield "", [detail]
            continue
        text = detail[name]
        for piece in (text[:2], text[2:]):
            yield piece, [{**beginning, name: piece}]
        if "signature" in detail:
            yield "", [{**beginning, "signature": detail["signature"]}]


def deltas(details: list[Any], is_late: bool) -> Iterator[Any]:
    thoughts = [
        {"reasoning": text or None, "reasoning_details": piece, "content": ""}
        for text, piece in pieces_of(details)
    ]
    call = {"tool_calls": [{**CALL, "index": 0}]}
    # Gemini's models behind OpenRouter send what belongs to a call after it.
    cut = -1 if is_late else len(thoughts)
    yield from thoughts[:cut]
    yield call
    yield from thoughts[cut:]


def upstream(bodies: list[Any], details: list[Any], is_late: bool) -> web.Application:
    text = "".join(piece for piece, _ in pieces_of(details))

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        messages = [message for message in body["messages"] if message["role"] == "assistant"]
        if any(message.get("reasoning_details") != details for message in messages):
            error = {"message": "Invalid `signature` in `thinking` block", "code": 400}
            return web.json_response({"error": error}, status=400)
        if messages:
            message: Any = {"role": "assistant", "content": "Done."}
        else:
            message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
            message |= {"reasoning": text or None, "reasoning_details": details}
        reason = "stop" if messages else "tool_calls"
        head = {"id": "gen-1", "model": "m"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choices = [{"index": 0, "message": message, "finish_reason": reason}]
            return web.json_response({**head, "choices": choices, "usage": usage})
        chunks = [{"content": "Done."}] if messages else [*deltas(details, is_late)]
        events = [{"index": 0, "delta": delta, "finish_reason": None} for delta in chunks]
        events.append({"index": 0, "delta": {}, "finish_reason": reason})
        lines = [orjson.dumps({**head, "choices": [one]}).decode() for one in events]
        lines += [orjson.dumps({**head, "choices": [], "usage": usage}).decode(), "[DONE]"]
        body_text = "".join(f"data: {line}\n\n" for line in lines)
        return web.Response(text=body_text, content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    return app


async def through_messages(gateway: Gateway, stream: bool) -> None:
    async with AsyncAnthropic(
        base_url=f"{gateway.url}/beta", api_key=gateway.key, max_retries=0
    ) as client:
        tools: Any = [{"name": "f", "input_schema": SCHEMA}]
        fields: Any = {"model": "openai/m", "max_tokens": 50, "tools": tools}
        asked: Any = {"role": "user", "content": "Go"}
        if stream:
            async with client.messages.stream(**fields, messages=[asked]) as events:
                answer = await events.get_final_message()
        else:
            answer = await client.messages.create(**fields, messages=[asked])
        (call,) = [block for block in answer.content if block.type == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "42"}
        again: Any = [{"role": "assistant", "content": answer.content}]
        again.append({"role": "user", "content": [result]})
        last: Any = await client.messages.create(**fields, messages=[asked, *again])
        assert last.content[-1].text == "Done."


async def through_responses(gateway: Gateway, stream: bool) -> None:
    async with AsyncOpenAI(
        base_url=f"{gateway.url}/beta/v1", api_key=gateway.key, max_retries=0
    ) as client:
        tools = [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": False}]
        fields: Any = {"model": "openai/m", "tools": tools, "store": False}
        fields["include"] = ["reasoning.encrypted_content"]
        asked: Any = {"role": "user", "content": "Go"}
        if stream:
            async with client.responses.stream(**fields, input=[asked]) as events:
                answer = await events.get_final_response()
        else:
            answer = await client.responses.create(**fields, input=[asked])
        result = {"type": "function_call_output", "call_id": "c1", "output": "42"}
        output = [item.model_dump(exclude_none=True) for item in answer.output]
        for item in output:
            item.pop("parsed_arguments", None)
        last = await client.responses.create(**fields, input=[asked, *output, result])
        assert last.output_text == "Done."


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "details", [ALONE, TWICE, SUMMED, SILENT], ids=["one", "two", "summary", "encrypted"]
)
@pytest.mark.parametrize("is_late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("go", [through_messages, through_responses])
async def test_details_go_back_unchanged(tmp_path, go: Any, is_late: bool, details: Any, stream):
    bodies: list[Any] = []
    async with running_gateway(tmp_path, upstream(bodies, details, is_late)) as gateway:
        await go(gateway, stream)
    assert len(bodies) == 2, "nothing was refused"


async def test_details_hold_no_second_copy_of_the_text(tmp_path):
    long = [{**ALONE[0], "text": "Hm. " * 5_000}]
    async with running_gateway(tmp_path, upstream([], long, False)) as gateway:
        url = f"{gateway.url}/beta/v1/messages"
        asked = [{"role": "user", "content": "Go"}]
        body = {"model": "openai/m", "max_tokens": 50, "messages": asked}
        async with gateway.http.post(url, json=body, headers=gateway.api_key()) as answer:
            (block, _) = (await answer.json())["content"]
    assert len(block["thinking"]) == 20_000
    assert len(block["signature"]) < 400
