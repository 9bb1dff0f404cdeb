"""Responses to be read, their events, and what becomes of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson
import pytest

from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers import failures
from services.inference.providers.base import AnswerForm
from services.inference.providers.openai_responses.events import StreamReader, events_from_whole
from services.inference.providers.openai_responses.native_events import NativeReader
from services.inference.stream.accumulator import Accumulator
from tests.services.inference.providers.openai_responses.responses_calls import Json, call_of

USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 17,
}


class Provider:
    """Makes failures as an upstream does."""

    name = "acme"

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    def in_band(self, body: bytes) -> UpstreamError:
        return failures.in_band(self.name, body)


# What a response says of which nothing is kept.
NO_STATE: Json = {"background": False, "previous_response_id": None, "store": False}


def response(*items: Json, **fields: Any) -> Json:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-1-0613",
        "output": list(items),
        "error": None,
        "incomplete_details": None,
        "service_tier": "default",
        "usage": USAGE,
        **NO_STATE,
        **fields,
    }


def text(said: str, **fields: Any) -> Json:
    return {"type": "output_text", "text": said, "annotations": [], "logprobs": []} | fields


def refusal(said: str) -> Json:
    return {"type": "refusal", "refusal": said}


def message(*parts: Json, **fields: Any) -> Json:
    head = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    return {**head, "content": list(parts), **fields}


def reasoning(*summary: str, **fields: Any) -> Json:
    texts = [{"type": "summary_text", "text": one} for one in summary]
    return {"type": "reasoning", "id": "rs_1", "summary": texts, **fields}


def function_call(arguments: str = "{}", **fields: Any) -> Json:
    head = {"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "call_1"}
    return {**head, "name": "f", "arguments": arguments, **fields}


def custom_call(given: str, **fields: Any) -> Json:
    head = {"type": "custom_tool_call", "id": "ctc_1", "status": "completed", "call_id": "call_2"}
    return {**head, "name": "run", "input": given, **fields}


def search(**fields: Any) -> Json:
    action = {"type": "search", "query": "q"}
    return {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": action,
    } | fields


def _pieces(said: str) -> Iterator[str]:
    for at in range(0, len(said), 3):
        yield said[at : at + 3]


def events_of_item(index: int, item: Json) -> Iterator[Json]:
    """Return the events of one output item, as OpenAI writes them."""
    place = {"output_index": index, "item_id": item["id"]}
    kind = item["type"]
    begun = {**item, "status": "in_progress"}
    for name in ("content", "summary"):
        if name in item:
            begun[name] = []
    begun |= {name: "" for name in ("arguments", "input", "encrypted_content") if name in item}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    if kind == "message":
        for number, part in enumerate(item["content"]):
            yield from _events_of_part({**place, "content_index": number}, part)
    elif kind == "reasoning":
        yield from _events_of_thoughts(place, item)
    elif kind == "function_call":
        yield from _said("function_call_arguments", "arguments", place, item["arguments"])
    elif kind == "custom_tool_call":
        yield from _said("custom_tool_call_input", "input", place, item["input"])
    else:
        yield {"type": f"response.{kind}.in_progress", **place}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _events_of_part(place: Json, part: Json) -> Iterator[Json]:
    name = "text" if part["type"] == "output_text" else "refusal"
    empty = {**part, name: ""} | ({"annotations": []} if name == "text" else {})
    yield {"type": "response.content_part.added", **place, "part": empty}
    kind = "output_text" if name == "text" else "refusal"
    yield from _said(kind, name, place, part[name])
    for number, one in enumerate(part.get("annotations", ())):
        added = {"annotation_index": number, "annotation": one}
        yield {"type": "response.output_text.annotation.added", **place, **added}
    yield {"type": "response.content_part.done", **place, "part": part}


def _events_of_thoughts(place: Json, item: Json) -> Iterator[Json]:
    for number, part in enumerate(item["summary"]):
        here = {**place, "summary_index": number}
        empty = {"type": "summary_text", "text": ""}
        yield {"type": "response.reasoning_summary_part.added", **here, "part": empty}
        yield from _said("reasoning_summary_text", "text", here, part["text"])
        yield {"type": "response.reasoning_summary_part.done", **here, "part": part}
    for number, part in enumerate(item.get("content", ())):
        here = {**place, "content_index": number}
        yield from _said("reasoning_text", "text", here, part["text"])


def _said(kind: str, name: str, place: Json, said: str) -> Iterator[Json]:
    for piece in _pieces(said):
        yield {"type": f"response.{kind}.delta", **place, "delta": piece}
    yield {"type": f"response.{kind}.done", **place, name: said}


def events_of(whole: Json, middle: Iterable[Json] | None = None) -> list[Json]:
    """Return the events of a streamed response; `middle` stands in for those of its items."""
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    if middle is None:
        items = enumerate(whole["output"])
        middle = [event for index, item in items for event in events_of_item(index, item)]
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *middle,
        {"type": f"response.{whole['status']}", "response": whole},
    ]
    return [
        {"type": event["type"], "sequence_number": number, **event}
        for number, event in enumerate(events)
    ]


CITATION = {"type": "url_citation", "start_index": 0, "end_index": 2, "title": "t", "url": "u"}
# A response with everything that is read, and its events.
SAMPLE = response(
    reasoning("a", encrypted_content="gAAAA", content=[{"type": "reasoning_text", "text": "b"}]),
    message(text("Hello", annotations=[CITATION]), refusal("No"), phase="final_answer"),
    function_call('{"a":1}'),
    custom_call("1+1"),
    search(),
    incomplete_details={"reason": "max_output_tokens"},
)
EVENTS = events_of(SAMPLE)


def data(*events: Json | bytes) -> bytes:
    """Return the text of a stream of such events."""
    parts: list[bytes] = []
    for event in events:
        kind = event.get("type") if isinstance(event, dict) else None
        name = kind.encode() if isinstance(kind, str) and kind.isprintable() else b"x"
        json = event if isinstance(event, bytes) else orjson.dumps(event)
        parts.append(b"event: %b\ndata: %b\n\n" % (name, json))
    return b"".join(parts)


def natives(events: Sequence[Event]) -> list[bytes]:
    """Return the provider's own events."""
    found: list[bytes] = []
    for event in events:
        if event.native_count:
            parts = event.native.split(b"\n\n")[:-1]
            jsons = [part.partition(b"\ndata: ")[2] for part in parts]
            numbers = [orjson.loads(json)["sequence_number"] for json in jsons]
            first = event.native_number
            assert numbers == [*range(first, first + event.native_count)]
            found += jsons
        elif event.native:
            found.append(event.native)
    return found


def reader_of(limits: Limits | None = None, **fields: Any) -> StreamReader:
    return StreamReader(call_of(**fields), Provider(limits), lambda kind: f"{kind}new")


def native_reader_of(limits: Limits | None = None) -> NativeReader:
    call = call_of(accepts=AnswerForm.PASSTHROUGH)
    return NativeReader(call, Provider(limits), lambda kind: f"{kind}new")


def handed_on(event: Json) -> Json:
    """Return an event as a caller of the dialect is handed it, less what the gateway writes."""
    given = event.get("response")
    if given is None or (NO_STATE.items() <= given.items() and given.get("conversation") is None):
        return event
    return {**event, "response": without_state(given)}


def without_state(given: Json) -> Json:
    """Return a response object as the gateway passes it on: without stored state."""
    rest = {name: value for name, value in given.items() if name != "conversation"}
    return {**rest, **NO_STATE, "id": ""}


def read(*events: Json | bytes, **fields: Any) -> list[Event]:
    """Return the events of a whole stream, after the accumulator has agreed to their order."""
    reader = reader_of(**fields)
    out: list[Event] = []
    reader.feed(data(*events), out)
    reader.end([])
    answer(out)
    return out


def answer(events: Iterable[Event]) -> GenerateResponse:
    accumulator = Accumulator()
    accumulator.add(events)
    return accumulator.response()


def streamed(*items: Json, **fields: Any) -> GenerateResponse:
    return answer(read(*events_of(response(*items, **fields))))


def whole(*items: Json, **fields: Any) -> GenerateResponse:
    given = response(*items, **fields)
    return answer(events_from_whole(given, call_of(), Provider(), lambda kind: kind))


def both(*items: Json, **fields: Any) -> GenerateResponse:
    """Return an answer, which is the same whole and streamed."""
    one = whole(*items, **fields)
    assert streamed(*items, **fields) == one
    return one


def fields_in(json: bytes) -> Json:
    parsed: Json = orjson.loads(json)
    return parsed


def said_in(events: Iterable[Event]) -> list[str]:
    """Return the texts of deltas."""
    return [event.text or event.refusal or event.thinking or event.input for event in events]


def failure_of(reader: StreamReader | NativeReader, *events: Json | bytes) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        reader.feed(data(*events), [])
        reader.end([])
    return raised.value


def reason_of(error: UpstreamError) -> str:
    return Reason.Name(error.reason).removeprefix("REASON_")


def kinds_of(events: Sequence[Event]) -> list[str]:
    return [event.WhichOneof("kind") or "" for event in events]
