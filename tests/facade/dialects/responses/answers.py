"""Answers for tests: whole, as the events of a stream, and as the official client reads them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from facade.dialects.responses import Echo, ResponseStream, parse_request, render_response
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Opaque,
    SearchResult,
    SearchResults,
    ServerToolResult,
    ToolUse,
)
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse
from tests.facade.dialects.openai import answers as chats

CREATED = chats.CREATED
RESPONSE_ID = "resp_" + "ab" * 24

answer, choice, text, thinking, call = (
    chats.answer,
    chats.choice,
    chats.text,
    chats.thinking,
    chats.call,
)
APPROVAL = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "arguments": "",
    "name": "n",
    "server_label": "s",
}
EVENTS: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


def own(**fields: Any) -> Opaque:
    return Opaque(dialect=conversation.DIALECT_RESPONSES, json=json.dumps(fields).encode())


def search(number: int, query: str) -> Block:
    use = ToolUse(id=f"srvtoolu_gw{number}", name="web_search", input=json.dumps({"query": query}))
    return Block(server_tool_use=use)


def found(number: int, *urls: str) -> Block:
    results = SearchResults(results=[SearchResult(url=url) for url in urls])
    result = ServerToolResult(tool_use_id=f"srvtoolu_gw{number}", name="web_search", search=results)
    return Block(server_tool_result=result)


def echo(**fields: Any) -> Echo:
    """Return what the response to a body with these fields repeats."""
    request_fields = {"model": "m", "input": "x"} | fields
    return parse_request(json.dumps(request_fields).encode()).state.echo


def rendered(response: GenerateResponse, given: Echo | None = None) -> dict[str, Any]:
    """Return a whole answer, with every type checked by the client's."""
    raw = render_response(response, RESPONSE_ID, CREATED, given or echo())
    return checked(json.loads(raw))


def checked(response: dict[str, Any]) -> dict[str, Any]:
    """Return a response object that the client's type accepts."""
    Response.model_validate(response)
    return response


def events_of(response: GenerateResponse, size: int = 3) -> list[Event]:
    """Return the events of an answer, calls of the gateway's own tools among them."""
    events = [chats.start(response)]
    for event in chats.choice_events(0, response.choices[0], size):
        block = event.block_start
        if block.HasField("server_tool_use"):
            written = block.server_tool_use.input
            opened = Event()
            opened.CopyFrom(event)
            opened.block_start.server_tool_use.input = ""
            events += [opened, Event(block=event.block, input=written)]
        else:
            events.append(event)
    return [*events, Event(usage=response.usage)]


def stream(given: Echo | None = None) -> ResponseStream:
    return ResponseStream(RESPONSE_ID, CREATED, given or echo(), lambda: CREATED)


def streamed(batches: Iterable[Sequence[Event]], given: Echo | None = None) -> list[dict[str, Any]]:
    """Return the events that a stream of these batches consists of."""
    encoder = stream(given)
    return read(b"".join([*(encoder.encode(batch) for batch in batches), encoder.finish()]))


def read(raw: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream, each accepted by the client's type and numbered in order."""
    *parts, remainder = raw.decode().split("\n\n")
    assert remainder == ""
    events = []
    for number, part in enumerate(parts):
        name, data = part.split("\n")
        event = json.loads(data.removeprefix("data: "))
        EVENTS.validate_python(event)
        assert name == f"event: {event['type']}"
        assert event["sequence_number"] == number
        events.append(event)
    return events


# Fields that deltas add to, and that the events at the end of a part repeat.
OF_PARTS = {"output_text": "text", "refusal": "refusal", "reasoning_summary_text": "text"}
OF_ITEMS = {"function_call_arguments": "arguments", "custom_tool_call_input": "input"}
SAME = ("id", "type", "content", "summary", "arguments", "input")


def assembled(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the output items as a reader puts them together from the deltas alone."""
    items: dict[int, dict[str, Any]] = {}
    ended: set[tuple[object, ...]] = set()
    for event in events:
        index = event.get("output_index")
        if event["type"].endswith((".added", ".done")) and "annotation" not in event:
            place = event.get("content_index", event.get("summary_index"))
            once = (event["type"], index, place)
            assert once not in ended
            ended.add(once)
        kind, _, stage = event["type"].removeprefix("response.").rpartition(".")
        if event["type"] == "response.output_item.added":
            assert index == len(items)
            items[index] = json.loads(json.dumps(event["item"]))
        elif event["type"] == "response.output_item.done":
            for field in SAME:
                assert items[index].get(field) == event["item"].get(field)
            items[index] = event["item"]
        elif index is not None:
            assert items[index]["id"] == event["item_id"]
            add_to(items[index], kind, stage, event)
    return [items[index] for index in sorted(items)]


def add_to(item: dict[str, Any], kind: str, stage: str, event: dict[str, Any]) -> None:
    """Add an event to an item, or check what it repeats."""
    if kind in OF_ITEMS:
        field = OF_ITEMS[kind]
        if stage == "delta":
            item[field] += event["delta"]
        else:
            assert item[field] == event[field]
        return
    parts = item.get("summary") if kind.startswith("reasoning") else item.get("content")
    place = event.get("summary_index", event.get("content_index"))
    if place is None:
        assert item["type"] == "web_search_call"
    elif kind.endswith("_part"):
        if stage == "added":
            assert place == len(parts)
            parts.append(dict(event["part"]))
        assert parts[place] == event["part"]
    elif kind == "output_text.annotation":
        annotations = parts[place]["annotations"]
        assert event["annotation_index"] == len(annotations)
        parts[place]["annotations"] = [*annotations, event["annotation"]]
    elif stage == "delta":
        parts[place][OF_PARTS[kind]] += event["delta"]
        if told := event.get("logprobs"):
            parts[place]["logprobs"] = [*parts[place]["logprobs"], *told]
    else:
        assert parts[place][OF_PARTS[kind]] == event[OF_PARTS[kind]]
