"""Tools whose property names Anthropic rejects: renamed on the way there, and in calls restored."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway

Json = dict[str, Any]

LONG = "x" * 70
NAMES = ["$top", "@odata.type", "größe", "ok", LONG]
SCHEMA: Json = {
    "type": "object",
    "properties": {name: {"type": "integer"} for name in NAMES},
    "required": ["$top", "ok"],
}
SCHEMA["properties"]["again"] = {"$ref": "#/properties/$top"}
ASKED = {"role": "user", "content": "Go"}
BIG = 2**70


class Caller:
    """A server of Anthropic's dialect that calls each tool, with all of its properties.

    Attributes:
        bodies: what it was sent.
        repeats: whether it repeats the arguments of the last call.
    """

    repeats = False

    def __init__(self) -> None:
        self.bodies: list[Json] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1/messages", self._messages)
        return app

    async def _messages(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        last = body["messages"][-2]["content"][0] if self.repeats else {}
        calls = [
            {"type": "tool_use", "id": f"toolu_{index}", "name": tool["name"]}
            | {"input": last.get("input") or dict.fromkeys(_properties(tool), BIG)}
            for index, tool in enumerate(body["tools"])
        ]
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        head["usage"] = {"input_tokens": 1, "output_tokens": 1}
        if not body.get("stream"):
            return web.json_response({**head, "content": calls, "stop_reason": "tool_use"})
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in _events(head, calls))
        return web.Response(text=text, content_type="text/event-stream")


def _properties(tool: Json) -> Json:
    properties: Json = tool["input_schema"]["properties"]
    return properties


def _events(head: Json, calls: list[Json]) -> Iterator[Json]:
    yield {"type": "message_start", "message": {**head, "content": []}}
    for index, call in enumerate(calls):
        place = {"index": index}
        block = {**call, "input": {}}
        yield {"type": "content_block_start", **place, "content_block": block}
        written = json.dumps(call["input"])
        for start in range(0, len(written), 5):
            delta = {"type": "input_json_delta", "partial_json": written[start : start + 5]}
            yield {"type": "content_block_delta", **place, "delta": delta}
        yield {"type": "content_block_stop", **place}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": head["usage"]}
    yield {"type": "message_stop"}


@pytest.fixture
async def server() -> Caller:
    return Caller()


@pytest.fixture
async def gateway(tmp_path: Any, server: Caller) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path, server.app()) as running:
        yield running


async def ask(gateway: Gateway, path: str, **body: Any) -> str:
    url = f"{gateway.url}/beta/v1/{path}"
    body = {"model": "anthropic/m", **body}
    headers = gateway.api_key() if path == "messages" else gateway.bearer()
    async with gateway.http.post(url, json=body, headers=headers) as answer:
        text = await answer.text()
        assert answer.status == 200, text
        return text


def events(text: str) -> list[Json]:
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def chat_tools(*schemas: Json) -> list[Json]:
    return [
        {"type": "function", "function": {"name": f"f{index}", "parameters": schema}}
        for index, schema in enumerate(schemas)
    ]


PLAIN = {"type": "object", "properties": {"a": {"type": "integer"}}}
FIELDS = [{}, {"top_logprobs": None, "user": "u"}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fields", FIELDS, ids=["plain", "translated"])
async def test_a_chats_call_has_the_callers_names(gateway, server, stream, fields):
    tools = chat_tools(SCHEMA, PLAIN)
    answer = await ask(
        gateway, "chat/completions", messages=[ASKED], tools=tools, stream=stream, **fields
    )
    arguments = ["", ""]
    if stream:
        for event in events(answer):
            for call in event["choices"][0]["delta"].get("tool_calls", ()):
                arguments[call["index"]] += call["function"].get("arguments", "")
    else:
        calls = json.loads(answer)["choices"][0]["message"]["tool_calls"]
        arguments = [call["function"]["arguments"] for call in calls]
    assert json.loads(arguments[0]) == dict.fromkeys([*NAMES, "again"], BIG)
    assert json.loads(arguments[1]) == {"a": BIG}

    schema = server.bodies[0]["tools"][0]["input_schema"]
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in schema["properties"])
    assert len(schema["properties"]) == len(NAMES) + 1
    assert set(schema["required"]) <= schema["properties"].keys()
    assert "ok" in schema["required"]
    pointed = schema["properties"]["again"]["$ref"].removeprefix("#/properties/")
    assert pointed in schema["properties"]


NESTED: Json = {
    "type": "object",
    "properties": {
        "query": {"type": "object", "properties": {"$filter": {"type": "integer"}}},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
    },
    "$defs": {"row": {"type": "object", "properties": {"@odata.id": {"type": "integer"}}}},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fields", FIELDS, ids=["plain", "translated"])
async def test_names_inside_of_arguments_are_restored(gateway, server, stream, fields):
    given = {"query": {"$filter": 1}, "rows": [{"@odata.id": 2}, {"other": 3}]}
    call = {"id": "c", "type": "function"}
    call["function"] = {"name": "f0", "arguments": json.dumps(given)}
    messages = [ASKED, {"role": "assistant", "content": None, "tool_calls": [call]}]
    messages.append({"role": "tool", "tool_call_id": "c", "content": "ok"})
    server.repeats = True
    answer = await ask(
        gateway,
        "chat/completions",
        messages=messages,
        tools=chat_tools(NESTED),
        stream=stream,
        **fields,
    )
    (body,) = server.bodies
    sent = body["messages"][1]["content"][0]["input"]
    filters = body["tools"][0]["input_schema"]["properties"]["query"]["properties"]
    ids = body["tools"][0]["input_schema"]["$defs"]["row"]["properties"]
    assert sent["query"].keys() == filters.keys() != {"$filter"}
    assert sent["rows"][0].keys() == ids.keys() != {"@odata.id"}
    arguments = "".join(
        call["function"].get("arguments", "")
        for event in (events(answer) if stream else [json.loads(answer)])
        for choice in event["choices"]
        for call in choice.get("delta", choice.get("message")).get("tool_calls", ())
    )
    assert json.loads(arguments) == given


@pytest.mark.parametrize("stream", [False, True])
async def test_a_responses_call_has_the_callers_names(gateway, stream):
    tools = [{"type": "function", "name": "f", "parameters": SCHEMA}]
    answer = await ask(gateway, "responses", input="Go", tools=tools, stream=stream, store=False)
    response = events(answer)[-1]["response"] if stream else json.loads(answer)
    (call,) = response["output"]
    assert json.loads(call["arguments"]) == dict.fromkeys([*NAMES, "again"], BIG)


@pytest.mark.parametrize("fields", FIELDS, ids=["plain", "translated"])
async def test_earlier_calls_have_the_names_that_are_sent(gateway, server, fields):
    given = json.dumps({"$top": 1, "ok": 2, "other": {"$top": 3}})
    calls = [
        {"id": f"c{index}", "type": "function", "function": {"name": name, "arguments": text}}
        for index, (name, text) in enumerate((("f0", given), ("f0", "[1]"), ("gone", given)))
    ]
    messages = [ASKED, {"role": "assistant", "content": None, "tool_calls": calls}]
    messages += [
        {"role": "tool", "tool_call_id": f"c{index}", "content": "ok"} for index in (0, 1, 2)
    ]
    await ask(gateway, "chat/completions", messages=messages, tools=chat_tools(SCHEMA), **fields)
    (body,) = server.bodies
    inputs = [block["input"] for block in body["messages"][1]["content"]]
    renamed, other, last = inputs[0], inputs[0]["other"], inputs[2]
    sent = body["tools"][0]["input_schema"]["properties"].keys()
    assert renamed.keys() - {"other"} <= sent
    assert sorted(value for value in renamed.values() if isinstance(value, int)) == [1, 2]
    assert other == {"$top": 3}
    assert last == json.loads(given)


async def test_names_in_messages_pass_unchanged(gateway, server):
    tools = [{"name": "f", "input_schema": SCHEMA}]
    answer = await ask(gateway, "messages", messages=[ASKED], tools=tools, max_tokens=50)
    assert json.loads(answer)["content"][0]["input"].keys() == {*NAMES, "again"}
    assert server.bodies[0]["tools"][0]["input_schema"] == SCHEMA
