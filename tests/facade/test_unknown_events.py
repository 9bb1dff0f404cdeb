"""Events, blocks and deltas of Anthropic's streams that nobody here has heard of, over HTTP."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway

Json = dict[str, Any]

QUEUE = {"type": "queue_position", "position": 3}
SHINY = {"type": "shiny_delta", "shine": 1}
NOTE = {"type": "content_block_note", "note": ["n"]}
HOLOGRAM = {"type": "hologram", "depth": 0}
DEEPER = {"type": "hologram_delta", "depth": 2}
SUMMARY = {"type": "message_summary", "words": 1}


def told() -> Iterator[Json]:
    """Return the events of one stream."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "usage": usage}}
    yield QUEUE
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
    yield {"type": "content_block_delta", "index": 0, "delta": SHINY}
    yield NOTE
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "content_block_start", "index": 1, "content_block": HOLOGRAM}
    yield {"type": "content_block_delta", "index": 1, "delta": DEEPER}
    yield {"type": "content_block_stop", "index": 1}
    yield SUMMARY
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
    yield {"type": "message_stop"}


def beside() -> Iterator[Json]:
    """Return the events of a stream with a field without a name beside the others of each."""
    metrics = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 1}}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    texts = [{"type": "text_delta", "text": text} for text in ("Hi", "", " there", " you", "!")]
    end = {"stop_reason": "end_turn", "stop_sequence": None, "why": {"a": 1}}
    yield {"type": "message_start", "message": {**message, "usage": usage}, "region": "x"}
    yield {"type": "ping", "cost": "0"}
    block = {"type": "text", "text": ""}
    yield {"type": "content_block_start", "index": 0, "content_block": block, "n": 1}
    for delta in texts:
        yield {"type": "content_block_delta", "index": 0, "delta": delta, "at": 7}
    yield {"type": "content_block_stop", "index": 0, "took": 2}
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    yield {"type": "content_block_start", "index": 1, "content_block": call}
    for piece in ("", '{"a":', "1}"):
        delta = {"type": "input_json_delta", "partial_json": piece}
        yield {"type": "content_block_delta", "index": 1, "delta": delta, "at": 7}
    yield {"type": "content_block_stop", "index": 1}
    yield {"type": "message_delta", "delta": {"early": 1}, "usage": usage, "before": 1}
    yield {"type": "message_delta", "delta": end, "usage": usage, "filters": [{"b": 2}]}
    yield {"type": "message_delta", "delta": {}, "usage": usage, "after": 3}
    yield {"type": "message_stop", **metrics}


def upstream(events: Callable[[], Iterator[Json]] = told) -> web.Application:
    async def messages(request: web.Request) -> web.Response:
        lines = (
            b"event: %b\ndata: %b\n\n" % (e["type"].encode(), orjson.dumps(e)) for e in events()
        )
        return web.Response(body=b"".join(lines), content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/v1/messages", messages)
    return app


async def events(gateway: Gateway, path: str, headers: Json, **fields: Any) -> list[Json]:
    body = {"model": "anthropic/m", "messages": [{"role": "user", "content": "Go"}], **fields}
    url = f"{gateway.url}/beta/v1/{path}"
    async with gateway.http.post(url, json={**body, "stream": True}, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        lines = (await answer.text()).splitlines()
    return [orjson.loads(line[len("data: ") :]) for line in lines if line.startswith("data: {")]


@pytest.mark.parametrize("memory", [{}, {"memory_id": "m"}], ids=["alone", "remembered"])
async def test_they_reach_callers_of_messages_in_their_places(tmp_path, memory):
    async with running_gateway(tmp_path, upstream()) as gateway:
        shown = await events(gateway, "messages", gateway.api_key(), max_tokens=9, **memory)
    assert [event["type"] for event in shown] == [event["type"] for event in told()]
    for unknown in (QUEUE, NOTE, SUMMARY):
        assert unknown in shown
    assert [event["delta"] for event in shown if event["type"] == "content_block_delta"] == [
        {"type": "text_delta", "text": "Hi"},
        SHINY,
        DEEPER,
    ]


def _as_shown(stream: Iterator[Json]) -> Iterator[Json]:
    """Return the events as they reach callers: what ends the message is told once."""
    ending: Json = {}
    for event in stream:
        if event["type"] == "message_delta":
            delta = {**ending.get("delta", {}), **event["delta"]}
            ending = {**ending, **event, "delta": delta}
            continue
        if event["type"] == "message_stop":
            yield ending
        yield event


@pytest.mark.parametrize("memory", [{}, {"memory_id": "m"}], ids=["alone", "remembered"])
async def test_fields_beside_those_with_a_name_stay_in_their_events(tmp_path, memory):
    async with running_gateway(tmp_path, upstream(beside)) as gateway:
        shown = await events(gateway, "messages", gateway.api_key(), max_tokens=9, **memory)
    for event in shown:
        event.pop("usage", None)
        event.get("message", {}).clear()
    expected = list(_as_shown(beside()))
    for event in expected:
        event.pop("usage", None)
        event.get("message", {}).clear()
    assert shown == expected


async def test_the_whole_answer_is_read_without_what_stood_beside_it(tmp_path):
    async with running_gateway(tmp_path, upstream(beside)) as gateway:
        shown = await events(gateway, "chat/completions", gateway.bearer())
    text = "".join(one["choices"][0]["delta"].get("content") or "" for one in shown)
    assert text.startswith("Hi there you!") and "error" not in shown[-1]


async def test_callers_of_chat_read_the_answer_without_them(tmp_path):
    async with running_gateway(tmp_path, upstream()) as gateway:
        shown = await events(gateway, "chat/completions", gateway.bearer())
    text = "".join(one["choices"][0]["delta"].get("content") or "" for one in shown)
    assert text.startswith("Hi") and "error" not in shown[-1]
    assert shown[-1]["choices"][0]["finish_reason"] == "stop"
