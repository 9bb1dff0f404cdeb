"""JSON of memories, turns, snippets and profiles, in the format of the credential."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from facade.credentials import ApiFormat, Format
from facade.dialects.memory.messages import message_object
from gateway.memory.v1.memory_pb2 import Fact, Memory, Snippet, Turn

_STATES: Mapping[Memory.State.ValueType, str] = {
    Memory.STATE_IDLE: "idle",
    Memory.STATE_WRITING: "writing",
    Memory.STATE_SUMMARISING: "summarising",
}


def render_memory(memory: Memory, api_format: Format) -> bytes:
    """Return the JSON of one memory with its summary."""
    return orjson.dumps(
        {
            **_memory(memory, api_format),
            "summary": memory.summary or None,
            "degraded": memory.degraded,
        }
    )


def render_memory_list(memories: Sequence[Memory], next_page: str, api_format: Format) -> bytes:
    """Return the JSON of a page of memories."""
    return _list([_memory(memory, api_format) for memory in memories], next_page, api_format)


def render_deleted_memory(memory_id: str, api_format: Format) -> bytes:
    """Return the JSON that confirms the deletion of a memory."""
    if api_format is ApiFormat.OPENAI:
        return orjson.dumps({"object": "memory", "id": memory_id, "deleted": True})
    return orjson.dumps({"id": memory_id, "type": "memory_deleted"})


def render_turn_list(turns: Sequence[Turn], next_page: str, api_format: Format) -> bytes:
    """Return the JSON of a page of turns."""
    return _list([_turn(turn, api_format) for turn in turns], next_page, api_format)


def render_snippets(snippets: Iterable[Snippet], api_format: Format) -> bytes:
    """Return the JSON of the results of a search, the best first."""
    return _list([_snippet(snippet, api_format) for snippet in snippets], "", api_format)


def render_profile(facts: Iterable[Fact], api_format: Format) -> bytes:
    """Return the JSON of the caller's profile."""
    return orjson.dumps(
        {
            **_kind("memory.profile", api_format),
            "facts": [_fact(fact, api_format) for fact in facts],
        }
    )


def render_fact(fact: Fact, api_format: Format) -> bytes:
    """Return the JSON of a fact."""
    return orjson.dumps({**_kind("memory.fact", api_format), **_fact(fact, api_format)})


def render_deleted_fact(fact_id: str, api_format: Format) -> bytes:
    """Return the JSON that confirms the deletion of a fact."""
    if api_format is ApiFormat.OPENAI:
        return orjson.dumps({"object": "memory.fact", "id": fact_id, "deleted": True})
    return orjson.dumps({"id": fact_id, "type": "memory_fact_deleted"})


def render_deleted_profile(api_format: Format) -> bytes:
    """Return the JSON that confirms the deletion of the caller's profile."""
    if api_format is ApiFormat.OPENAI:
        return orjson.dumps({"object": "memory.profile", "deleted": True})
    return orjson.dumps({"type": "memory_profile_deleted"})


def _list(items: Sequence[Mapping[str, Any]], next_page: str, api_format: Format) -> bytes:
    """Return the JSON of a page of a list, whose items have an `id`."""
    return orjson.dumps(
        {
            **({"object": "list"} if api_format is ApiFormat.OPENAI else {}),
            "data": items,
            "first_id": items[0]["id"] if items else None,
            "last_id": items[-1]["id"] if items else None,
            "has_more": bool(next_page),
            "next_page": next_page or None,
        }
    )


def _memory(memory: Memory, api_format: Format) -> dict[str, Any]:
    return {
        **_kind("memory", api_format),
        "id": memory.memory_id,
        "created_at": _time(memory.created_at_ms, api_format),
        "updated_at": _time(memory.updated_at_ms, api_format),
        "turns": memory.turns,
        "summarised": memory.summarised,
        "pending": memory.pending,
        "state": _STATES[memory.state],
    }


def _turn(turn: Turn, api_format: Format) -> dict[str, Any]:
    return {
        **_kind("memory.turn", api_format),
        "id": turn.number,
        "created_at": _time(turn.created_at_ms, api_format),
        "open": turn.open,
        "messages": [message_object(message) for message in turn.messages],
    }


def _snippet(snippet: Snippet, api_format: Format) -> dict[str, Any]:
    return {
        **_kind("memory.snippet", api_format),
        "id": snippet.turn,
        "created_at": _time(snippet.created_at_ms, api_format),
        "text": snippet.text,
        "score": snippet.score,
    }


def _fact(fact: Fact, api_format: Format) -> dict[str, Any]:
    return {
        "id": fact.id,
        "topic": fact.topic,
        "sub_topic": fact.sub_topic,
        "value": fact.value,
        "sources": [
            {"memory_id": source.memory_id, "turn": source.turn} for source in fact.sources
        ],
        "updated_at": _time(fact.updated_at_ms, api_format),
    }


def _kind(name: str, api_format: Format) -> dict[str, str]:
    return {"object": name} if api_format is ApiFormat.OPENAI else {"type": name.replace(".", "_")}


def _time(at_ms: int, api_format: Format) -> int | str:
    seconds = at_ms // 1000
    if api_format is ApiFormat.OPENAI:
        return seconds
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
