"""Every part of the events of a stream by the types of the SDKs, and a stream that has it."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import create_model

from tests.surface.bodies import values_of, wrapped
from tests.surface.requests import Part, parts_in
from tests.surface.samples import is_needed, least
from tests.surface.sdk_types import fields_of

Json = dict[str, Any]

# Fields whose members' fields have rows of their own. Those of whole objects (the message, a
# block, an item, the response) are in the tables of whole answers.
_ENTERED: Mapping[str, frozenset[str]] = {
    "events_of_chat": frozenset({"events", "choices", "delta", "tool_calls", "function"}),
    "events_of_messages": frozenset({"events", "delta"}),
    "events_of_responses": frozenset({"events"}),
}
# The list of events in its holder has a row for each kind of event, if there are several.
_OF_THE_STREAM = frozenset({"sequence_number"})
_USAGE = {"input_tokens": 3, "output_tokens": 4}
# The kind of the block that a delta continues.
_BLOCKS: Mapping[str, Json] = {
    "input_json_delta": {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "signature_delta": {"type": "thinking", "thinking": "Hm.", "signature": ""},
    "citations_delta": {"type": "text", "text": "It rains."},
    "compaction_delta": {"type": "compaction", "content": None},
}
_TEXT_BLOCK = {"type": "text", "text": ""}


@cache
def root_of(table: str) -> Any:
    """Return the type of the streams of a table: an object with their events."""
    from anthropic.types.beta import BetaRawMessageStreamEvent
    from openai.types.chat import ChatCompletionChunk
    from openai.types.responses import ResponseStreamEvent

    event: Any = {
        "events_of_chat": ChatCompletionChunk,
        "events_of_messages": BetaRawMessageStreamEvent,
        "events_of_responses": ResponseStreamEvent,
    }[table]
    return create_model("Stream", events=(list[event], ...))


@cache
def event_parts(table: str) -> Sequence[Part]:
    """Return every part of the events of a table, without their list and their numbers."""
    fields = fields_of(root_of(table), enters=lambda name: name in _ENTERED[table])
    return tuple(part for part in parts_in(fields) if part.field.name not in _OF_THE_STREAM)


def streams(table: str, part: Part) -> tuple[list[Json], list[list[Json]]]:
    """Return a stream with a part, and those that differ from it in this part alone."""
    field, way = part.field, part.field.steps[:-1]
    around = {
        "events_of_chat": _chat,
        "events_of_messages": _messages,
        "events_of_responses": _responses,
    }[table]

    def build(value: Any) -> list[Json]:
        if not way:  # an event as a whole
            return around(value[0] if value else None)
        held = dict(least(field.holder))
        held.pop(field.name, None)
        if value is not None:
            held[field.name] = value
        return around(wrapped(way, held)["events"][0])

    first, *others = values_of(part)
    if not way or not is_needed(field.holder, field.name, field.hint):
        others = [None]
    return build(first), [build(one) for one in others]


def _chat(event: Json | None) -> list[Json]:
    def chunk(delta: Json, reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {
            **{"id": "chatcmpl_1", "object": "chat.completion.chunk", "created": 1, "model": "m"},
            "choices": [choice],
        }

    # A field without which no event is left: the stream without the event.
    event = event or {"choices": []}
    ends = any(choice.get("finish_reason") for choice in event["choices"])
    calls = any((choice.get("delta") or {}).get("tool_calls") for choice in event["choices"])
    last = [] if ends else [chunk({}, "tool_calls" if calls else "stop")]
    return [chunk({"role": "assistant", "content": "Hi. "}), event, *last]


def _messages(event: Json | None) -> list[Json]:
    message = {
        **{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []},
        **{"stop_reason": None, "stop_sequence": None, "usage": _USAGE},
    }
    start = {"type": "message_start", "message": message}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    end: Json = {"type": "message_delta", "delta": delta, "usage": _USAGE}
    text: list[Json] = [
        {"type": "content_block_start", "index": 0, "content_block": _TEXT_BLOCK},
        {
            **{"type": "content_block_delta", "index": 0},
            "delta": {"type": "text_delta", "text": "Hi."},
        },
        {"type": "content_block_stop", "index": 0},
    ]
    block: list[Json] = []
    match event:
        case {"type": "message_start"}:
            start = {"type": "message_start", "message": {**message, **event["message"]}}
        case {"type": "message_delta"}:
            end = {**event, "delta": {"stop_reason": "end_turn", **event["delta"]}}
        case {"type": "content_block_start"}:
            block = [{**event, "index": 1}, {"type": "content_block_stop", "index": 1}]
        case {"type": "content_block_delta", "delta": {"type": str(kind)}}:
            begun = _BLOCKS.get(kind, _TEXT_BLOCK)
            block = [
                {"type": "content_block_start", "index": 1, "content_block": begun},
                {**event, "index": 1},
                {"type": "content_block_stop", "index": 1},
            ]
    return [start, *text, *block, end, {"type": "message_stop"}]


def _responses(event: Json | None) -> list[Json]:
    from openai.types.responses import Response

    response = {**least(Response), "id": "resp_1", "output": []}
    text = {
        **{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"},
        "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
    }
    started = {"type": "response.created", "response": {**response, "status": "in_progress"}}
    done = {"type": "response.output_item.done", "output_index": 0, "item": text}
    completed = {**response, "status": "completed", "output": [text]}
    end = {"type": "response.completed", "response": completed}
    match event:
        case {"type": "response.completed" | "response.incomplete" as kind, "response": ended}:
            status = kind.removeprefix("response.")
            end, event = {**event, "response": {**ended, "status": status}}, None
    events = [started, done, *([event] if event else []), end]
    return [{**one, "sequence_number": number} for number, one in enumerate(events)]
