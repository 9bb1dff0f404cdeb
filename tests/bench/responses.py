"""Responses as OpenAI answers them: a whole one, and the events of a stream."""

from collections.abc import Mapping, Sequence
from typing import Any

Fields = dict[str, Any]

# Events of a stream beside its deltas.
EVENTS_BESIDE_DELTAS = 8
# How often a stream tells a text: in deltas, at the end of the text, of its part and item, and in
# the response.
TOLD = 5

_ID = "resp_0672a7ec3b8b4a5d0068e1f0a6c1cc8197a9f1d4b2c3e5f607"
_ITEM_ID = "msg_0672a7ec3b8b4a5d0068e1f0a7b6f88197b2a4c6d8e0f1a2b3"
_USAGE = {
    "input_tokens": 200,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 220,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 420,
}


def whole(text: str) -> Fields:
    """Return a response that says a text."""
    return {**_response("completed"), "output": [_message("completed", [_part(text)])]}


def stream(
    words: Sequence[str],
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    """Return the events before the deltas, a delta per word, and the events after them."""
    text = "".join(words)
    item = {"output_index": 0, "item": _message("in_progress", [])}
    place = {"item_id": _ITEM_ID, "output_index": 0, "content_index": 0}
    begun, done = _response("in_progress"), whole(text)
    head: list[tuple[str, Fields]] = [
        ("created", {"response": begun}),
        ("in_progress", {"response": begun}),
        ("output_item.added", item),
        ("content_part.added", {**place, "part": _part("")}),
    ]
    deltas = [("output_text.delta", {**place, "delta": word, "logprobs": []}) for word in words]
    tail: list[tuple[str, Fields]] = [
        ("output_text.done", {**place, "text": text, "logprobs": []}),
        ("content_part.done", {**place, "part": _part(text)}),
        ("output_item.done", {"output_index": 0, "item": done["output"][0]}),
        ("completed", {"response": done}),
    ]
    events = [
        {"type": f"response.{kind}", "sequence_number": number, **fields}
        for number, (kind, fields) in enumerate((*head, *deltas, *tail))
    ]
    end = len(events) - len(tail)
    return events[: len(head)], events[len(head) : end], events[end:]


def _part(text: str) -> Fields:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _message(status: str, content: Sequence[Fields]) -> Fields:
    return {
        "id": _ITEM_ID,
        "type": "message",
        "status": status,
        "content": content,
        "role": "assistant",
    }


def _response(status: str) -> Fields:
    is_over = status == "completed"
    return {
        "id": _ID,
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "background": False,
        "completed_at": 1_700_000_003 if is_over else None,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": 512,
        "max_tool_calls": None,
        "model": "bench",
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _USAGE if is_over else None,
        "user": None,
        "metadata": {},
    }
