"""Interactions for response objects. Pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from facade.dialects.interactions.steps import CALL, Json, steps_of

OBJECT: Final = "interaction"
_ACTION: Final = "requires_action"


def render_interaction(response: bytes, sent: Iterable[bytes] | None = None) -> bytes:
    """Return the interaction of a response object.

    Args:
        response: the response object.
        sent: the items that it was generated from; None to leave its input out.
    """
    body: Json = orjson.loads(response)
    steps = [step for item in body["output"] for step in steps_of(item)]
    made = {**described(body), "steps": steps}
    if sent is not None:
        made["input"] = [step for item in sent for step in steps_of(orjson.loads(item))]
    return orjson.dumps(made)


def described(body: Mapping[str, Any]) -> Json:
    """Return the fields of the interaction of a response object, without its steps."""
    output = body.get("output") or ()
    status = body["status"]
    if status == "completed" and any(item.get("type") == CALL for item in output):
        status = _ACTION
    created = body["created_at"]
    made: Json = {
        "id": body["id"],
        "object": OBJECT,
        "status": status,
        "model": body["model"],
        "created": _time(created),
        "updated": _time(body.get("completed_at") or created),
    }
    for name, own in (
        ("previous_response_id", "previous_interaction_id"),
        ("instructions", "system_instruction"),
        ("metadata", "labels"),
        ("gateway", "gateway"),
    ):
        if value := body.get(name):
            made[own] = value
    if error := body.get("error"):
        made["errors"] = [{"code": error.get("code"), "message": error.get("message")}]
    if usage := body.get("usage"):
        made["usage"] = _usage(usage, output)
    hidden = dict.fromkeys(str(item.get("type")) for item in output if not steps_of(item))
    if hidden:
        gateway = made.get("gateway") or {}
        dropped = [*gateway.get("dropped", ()), *(f"answer.{name}" for name in hidden)]
        made["gateway"] = {**gateway, "dropped": dropped}
    return made


def _usage(usage: Mapping[str, Any], output: Iterable[Mapping[str, Any]]) -> Json:
    """Return the usage; thoughts are counted apart from the output, as Google does."""
    thoughts = (usage.get("output_tokens_details") or {}).get("reasoning_tokens") or 0
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0
    made: Json = {
        "total_input_tokens": usage["input_tokens"],
        "total_cached_tokens": cached,
        "total_output_tokens": max(0, usage["output_tokens"] - thoughts),
        "total_thought_tokens": thoughts,
        "total_tokens": usage["input_tokens"] + usage["output_tokens"],
    }
    searches = sum(item.get("type") == "web_search_call" for item in output)
    if searches:
        made["grounding_tool_count"] = [{"type": "google_search", "count": searches}]
    return made


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
