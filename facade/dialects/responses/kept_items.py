"""Input items in the form in which they are stored: with a type and an id. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from facade.dialects.responses.state import Reference
from services.common import ids

Json = dict[str, Any]

_REFERENCE = "item_reference"
_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "reasoning": "rs",
}
# Types of items with a status.
_WITH_STATUS = ("message", "function_call", "function_call_output")
# Defaults of members that clients expect in parts of items, by the type of the part.
_PART_MEMBERS: Mapping[str, Json] = {
    "output_text": {"annotations": [], "logprobs": []},
    "input_image": {"detail": "auto"},
}


def references_in(items: Sequence[Mapping[str, Any]], path: str) -> Sequence[Reference]:
    """Return the references to stored items among items; `path` is the path of their list."""
    return [
        Reference(index, item["id"], f"{path}[{index}]")
        for index, item in enumerate(items)
        if (kind := item.get("type")) == _REFERENCE or (not kind and "role" not in item)
    ]


def kept_item(item: Mapping[str, Any], new_id: ids.IdGenerator) -> Json:
    """Return an item with its type and an id."""
    kept = {**item, "type": _kind(item)}
    if isinstance(kept.get("id"), str) and kept["id"]:
        return kept
    return {**kept, "id": new_id(f"{_PREFIXES.get(kept['type'], 'item')}_")}


def conversation_item(item: Mapping[str, Any], new_id: ids.IdGenerator) -> Json:
    """Return an item with all members that clients expect of an item of a conversation."""
    kept = kept_item(item, new_id)
    kind = kept["type"]
    if kind in _WITH_STATUS and kept.get("status") is None:
        kept["status"] = "completed"
    if kind == "message":
        kept["content"] = _parts(kept)
    elif kind == "reasoning" and kept.get("summary") is None:
        kept["summary"] = []
    return kept


def _parts(message: Json) -> list[Json]:
    """Return the content of a message, which may be a text, as parts."""
    content = message["content"]
    if isinstance(content, str):
        kind = "output_text" if message["role"] == "assistant" else "input_text"
        content = [{"type": kind, "text": content}]
    return [{**_PART_MEMBERS.get(part["type"], {}), **_given(part)} for part in content]


def _given(part: Json) -> Json:
    """Return a part without the nulls of members that have a default."""
    members = _PART_MEMBERS.get(part["type"], {})
    return {name: value for name, value in part.items() if value is not None or name not in members}


def _kind(item: Mapping[str, Any]) -> str:
    """Return the type of an input item, which messages and references may omit."""
    return item.get("type") or ("message" if "role" in item else _REFERENCE)
