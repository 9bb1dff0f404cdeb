"""The events of a stored response, as they were streamed or generated from its object."""

import re
import zlib
from typing import Any

import orjson

from facade.dialects.responses.writer import EventWriter
from gateway.memory.v1.responses_pb2 import StoredResponse

Json = dict[str, Any]

# Maximum bytes of the stored events of a response.
MAX_EVENTS = 32 << 20

_END = b"\n\n"
_NUMBER = re.compile(rb'"sequence_number":(\d+)\}$')
_LAST = {"completed": "completed", "incomplete": "incomplete"}
# Field of the text of an item's parts, and the event of its parts, by the type of a part.
_PARTS = {"output_text": ("text", "output_text"), "refusal": ("refusal", "refusal")}


def pack_events(streamed: bytes) -> bytes:
    """Compress streamed events for storage; return b"" if they are too large."""
    return zlib.compress(streamed, 1) if len(streamed) <= MAX_EVENTS else b""


def replay(stored: StoredResponse, response: bytes, starting_after: int) -> bytes:
    """Return the events of a response that has ended, after `starting_after`.

    The result always has the last event, so that a stream ends with the whole response.

    Args:
        stored: the response, with its events.
        response: its response object.
        starting_after: sequence number of the last event to leave out; -1 for none.
    """
    packed = stored.content.events if stored.state == StoredResponse.STATE_ENDED else b""
    events = _unpack(packed) or _generate_events(response, stored)
    following = [event for event in events if _number(event) > starting_after]
    if following:
        return b"".join(following)
    return _last(orjson.loads(response), starting_after + 1)


def last_event(response: bytes, number: int) -> bytes:
    """Return the event that ends the stream of a response, with its sequence number."""
    return _last(orjson.loads(response), number)


def _unpack(packed: bytes) -> list[bytes]:
    """Return events as they were streamed; an empty list if none are stored, or too many."""
    if not packed:
        return []
    unpacking = zlib.decompressobj()
    streamed = unpacking.decompress(packed, MAX_EVENTS)
    if not unpacking.eof:
        return []
    return [event + _END for event in streamed.split(_END) if event]


def _number(event: bytes) -> int:
    """Return the sequence number of an event, which is usually at its end."""
    match = _NUMBER.search(event, max(len(event) - 64, 0), len(event) - len(_END))
    return (
        int(match[1]) if match else int(orjson.loads(event[event.index(b"{") :])["sequence_number"])
    )


def _last(response: Json, number: int) -> bytes:
    writer = EventWriter()
    writer.number = number
    kind = _LAST.get(response["status"], "failed")
    writer.write(f"response.{kind}", response=response)
    return writer.take()


def _generate_events(response: bytes, stored: StoredResponse) -> list[bytes]:
    """Generate events from a response object."""
    whole: Json = orjson.loads(response)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "error": None}
    begun |= {"incomplete_details": None, "completed_at": None}
    writer = EventWriter()
    if stored.background:
        queued = {**begun, "status": "queued"}
        writer.write("response.created", response=queued)
        writer.write("response.queued", response=queued)
    else:
        writer.write("response.created", response=begun)
    writer.write("response.in_progress", response=begun)
    for index, item in enumerate(whole["output"]):
        _write_item(writer, index, item)
    return [*writer.out, _last(whole, writer.number)]


def _write_item(writer: EventWriter, index: int, item: Json) -> None:
    """Write the events of an output item: its beginning, one delta per text, and its end."""
    kind = item.get("type")
    place = {"item_id": item.get("id"), "output_index": index}
    match kind:
        case "message":
            empty: Json = {"content": []}
        case "reasoning":
            empty = {"summary": []}
        case "function_call":
            empty = {"arguments": ""}
        case "custom_tool_call":
            empty = {"input": ""}
        case _:
            empty = {}
    added = {**item, **empty}
    if "status" in item:
        added["status"] = "in_progress"
    writer.write("response.output_item.added", output_index=index, item=added)
    match kind:
        case "message":
            for number, part in enumerate(item.get("content") or ()):
                _write_part(writer, {**place, "content_index": number}, part)
        case "reasoning":
            for number, part in enumerate(item.get("summary") or ()):
                _write_summary(writer, {**place, "summary_index": number}, part)
        case "function_call":
            written = item.get("arguments", "")
            name = "response.function_call_arguments"
            writer.write(f"{name}.delta", **place, delta=written)
            writer.write(f"{name}.done", **place, name=item.get("name"), arguments=written)
        case "custom_tool_call":
            name = "response.custom_tool_call_input"
            writer.write(f"{name}.delta", **place, delta=item.get("input", ""))
            writer.write(f"{name}.done", **place, input=item.get("input", ""))
    writer.write("response.output_item.done", output_index=index, item=item)


def _write_part(writer: EventWriter, place: Json, part: Json) -> None:
    kind = part.get("type")
    if kind not in _PARTS:
        writer.write("response.content_part.added", **place, part=part)
        writer.write("response.content_part.done", **place, part=part)
        return
    field, name = _PARTS[kind]
    is_text = kind == "output_text"
    logprobs: Json = {"logprobs": part.get("logprobs") or []} if is_text else {}
    empty = {**part, field: "", **({"annotations": [], "logprobs": []} if is_text else {})}
    writer.write("response.content_part.added", **place, part=empty)
    writer.write(f"response.{name}.delta", **place, delta=part[field], **logprobs)
    for number, annotation in enumerate(part.get("annotations") or ()):
        writer.write(
            "response.output_text.annotation.added",
            **place,
            annotation_index=number,
            annotation=annotation,
        )
    writer.write(f"response.{name}.done", **place, **{field: part[field]}, **logprobs)
    writer.write("response.content_part.done", **place, part=part)


def _write_summary(writer: EventWriter, place: Json, part: Json) -> None:
    text = part.get("text", "")
    name = "response.reasoning_summary"
    writer.write(f"{name}_part.added", **place, part={**part, "text": ""})
    writer.write(f"{name}_text.delta", **place, delta=text)
    writer.write(f"{name}_text.done", **place, text=text)
    writer.write(f"{name}_part.done", **place, part=part)
