"""Models that Google has in its Interactions API alone, for callers of every dialect."""

import json
from collections.abc import AsyncIterator
from functools import cache
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import TypeAdapter

from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.grid import each_row

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # Of google-genai's import.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession"),
]

Json = dict[str, Any]

MODEL = "gemini/only"
SIGNATURE = "c2lnbmVk"
REFUSAL: Json = {
    "error": {
        "code": 400,
        "message": "This model only supports Interactions API.",
        "status": "INVALID_ARGUMENT",
    }
}
ARGUMENTS = {"place": "Bern"}
SCHEMA: Json = {"type": "object", "properties": {"place": {"type": "string"}}}
THOUGHT: Json = {
    "type": "thought",
    "summary": [{"type": "text", "text": "I look."}],
    "signature": SIGNATURE,
}
CALL: Json = {"type": "function_call", "id": "call_1", "name": "look_up", "arguments": ARGUMENTS}
TEXT: Json = {"type": "model_output", "content": [{"type": "text", "text": "It is dry."}]}
USAGE: Json = {
    "total_input_tokens": 10,
    "total_output_tokens": 4,
    "total_thought_tokens": 3,
    "total_cached_tokens": 2,
    "total_tokens": 17,
}


@cache
def request_type() -> TypeAdapter[Any]:
    """Return the type of requests of Google's SDK, whose import takes more than a second."""
    from google.genai.interactions import CreateModelInteraction

    return TypeAdapter(CreateModelInteraction)


class Google(NamedTuple):
    """A server whose model is in the Interactions API alone, with the bodies it was sent."""

    bodies: list[Json]
    refused: list[str]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response({"models": []})
        if not request.path.endswith("/interactions"):
            self.refused.append(request.path)
            return web.json_response(REFUSAL, status=400)
        body = await request.json()
        checked = request_type().validate_python(body)
        assert "UNKNOWN" not in repr(checked), body
        self.bodies.append(body)
        has_result = any(step["type"] == "function_result" for step in body["input"])
        steps = [TEXT] if has_result or not body.get("tools") else [THOUGHT, CALL]
        about = {"id": "v1_a", "object": "interaction", "model": body["model"]}
        status = "requires_action" if CALL in steps else "completed"
        whole = {**about, "status": status, "steps": steps, "usage": USAGE}
        if not body.get("stream"):
            return web.json_response(whole)
        events = [
            {"event_type": "interaction.created", "interaction": {**about, "status": "queued"}}
        ]
        for index, step in enumerate(steps):
            events += streamed(index, step)
        events.append(
            {"event_type": "interaction.completed", "interaction": {**whole, "steps": []}}
        )
        text = "".join(f"event: {one['event_type']}\ndata: {json.dumps(one)}\n\n" for one in events)
        return web.Response(
            text=f"{text}event: done\ndata: [DONE]\n\n", content_type="text/event-stream"
        )


def streamed(index: int, step: Json) -> list[Json]:
    """Return the events of a step."""
    deltas: list[Json]
    match step["type"]:
        case "thought":
            begun: Json = {"type": "thought"}
            deltas = [
                {"type": "thought_summary", "content": step["summary"][0]},
                {"type": "thought_signature", "signature": step["signature"]},
            ]
        case "function_call":
            begun = {**step, "arguments": {}}
            written = json.dumps(step["arguments"])
            deltas = [
                {"type": "arguments_delta", "arguments": one} for one in (written[:3], written[3:])
            ]
        case _:
            begun = {"type": "model_output"}
            deltas = [{"type": "text", "text": one} for one in ("It is ", "dry.")]
    own = [{"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas]
    start = {"event_type": "step.start", "index": index, "step": begun}
    return [start, *own, {"event_type": "step.stop", "index": index}]


class Front(NamedTuple):
    """A gateway in front of Google."""

    gateway: Gateway
    google: Google

    async def post(self, path: str, **body: Any) -> Json:
        headers = {**self.gateway.bearer(), "compat-version": "2023-06-01"}
        async with self.gateway.http.post(
            self.gateway.url + path, json=body, headers=headers
        ) as answer:
            assert answer.status == 200, await answer.text()
            if answer.content_type == "text/event-stream":
                return {"text": await answer.text()}
            made: Json = await answer.json()
            return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def front(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Front]:
    google = Google([], [])
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", google.serve)
    async with serving(app) as url:
        providers = {"gemini": {"kind": "gemini", "base_url": f"{url}/v1beta", "api_key": "k"}}
        async with running_gateway(
            tmp_path_factory.mktemp("g"), url, providers=providers
        ) as gateway:
            yield Front(gateway, google)


FUNCTION = {"name": "look_up", "description": "Looks it up"}
CHAT: Json = {"messages": [{"role": "user", "content": "weather?"}]}
# Paths, bodies, and the field of their tools.
CALLERS: list[tuple[str, Json, Json]] = [
    (
        "/v1/chat/completions",
        {**CHAT, "reasoning_effort": "low"},
        {"tools": [{"type": "function", "function": {**FUNCTION, "parameters": SCHEMA}}]},
    ),
    (
        "/v1/messages",
        {**CHAT, "max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"tools": [{**FUNCTION, "input_schema": SCHEMA}]},
    ),
    (
        "/v1/responses",
        {"input": "weather?", "reasoning": {"effort": "low"}, "store": False},
        {"tools": [{"type": "function", **FUNCTION, "parameters": SCHEMA}]},
    ),
    (
        f"/v1beta/models/{MODEL}:generateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": "weather?"}]}],
            "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}},
        },
        {"tools": [{"functionDeclarations": [{**FUNCTION, "parametersJsonSchema": SCHEMA}]}]},
    ),
    (
        "/v1beta/interactions",
        {"input": "weather?", "generation_config": {"thinking_level": "low"}, "store": False},
        {"tools": [{"type": "function", **FUNCTION, "parameters": SCHEMA}]},
    ),
]


@each_row("path, body, tools", CALLERS)
async def test_callers_of_every_dialect(front: Front, path: str, body: Json, tools: Json) -> None:
    front.google.bodies.clear()
    named = {} if ":" in path else {"model": MODEL}
    answer = await front.post(path, **named, **body)
    assert "It is dry." in json.dumps(answer), answer
    sent = front.google.bodies[-1]
    text = {"type": "user_input", "content": [{"type": "text", "text": "weather?"}]}
    assert (sent["model"], sent["store"], sent["input"]) == ("only", False, [text])
    assert sent["generation_config"]["thinking_level"] == "low", sent
    if ":" in path:
        answer = await front.post(path.replace(":generate", ":streamGenerate") + "?alt=sse", **body)
    else:
        answer = await front.post(path, **named, **body, stream=True)
    assert "It is " in answer["text"] and "dry." in answer["text"], answer
    called = await front.post(path, **named, **body, **tools)
    assert "call_1" in json.dumps(called) and "Bern" in json.dumps(called), called
    (function,) = front.google.bodies[-1]["tools"]
    assert function == {"type": "function", **FUNCTION, "parameters": SCHEMA}
    # Only the first request asked for it elsewhere.
    assert len(front.google.refused) <= 1, front.google.refused


async def test_signatures_return_in_a_tool_loop(front: Front) -> None:
    path, body, tools = CALLERS[1]
    first = await front.post(path, model=MODEL, **body, **tools)
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "dry"}
    messages = [
        *body["messages"],
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": [result]},
    ]
    second = await front.post(path, **{"model": MODEL, **body, **tools, "messages": messages})
    assert second["content"][-1]["text"] == "It is dry.", second
    assert second["usage"]["input_tokens"] == 8 and second["usage"]["output_tokens"] == 7
    steps = front.google.bodies[-1]["input"]
    assert steps[1:3] == [THOUGHT, CALL], steps
    assert steps[3]["call_id"] == "call_1" and "dry" in json.dumps(steps[3]["result"])
