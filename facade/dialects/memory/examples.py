"""Example responses of each endpoint in both formats, for the OpenAPI document."""

from typing import Any

_DAY_A, _HOUR_A = 1793232000, 1793235600
_DAY_B, _HOUR_B = "2026-10-29T00:00:00Z", "2026-10-29T01:00:00Z"
_COUNTS = {"turns": 21, "summarised": 10, "pending": 1, "state": "idle"}
_SUMMARY = {"summary": "User: My sister Mo lives in Oslo.", "degraded": False}
_MEMORY_A = {
    "object": "memory",
    "id": "trip/oslo",
    "created_at": _DAY_A,
    "updated_at": _HOUR_A,
    **_COUNTS,
}
_MEMORY_B = {
    "type": "memory",
    "id": "trip/oslo",
    "created_at": _DAY_B,
    "updated_at": _HOUR_B,
    **_COUNTS,
}
_SAID = {
    "open": False,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Where does Mo live?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "In Oslo."}]},
    ],
}
_FOUND = {"text": "User: My sister Mo lives in Oslo.", "score": 0.0328}
_FACT = {
    "id": "fact_01M835CFX0BH6JDAB4AZQTB778",
    "topic": "family",
    "sub_topic": "sister",
    "value": "Mo, in Oslo",
    "sources": [{"memory_id": "trip/oslo", "turn": 3}],
}

CORRECTION = {"value": "Mo, in Bergen"}
SEARCH = {"query": "Where does my sister live?", "limit": 8}


def _page(item: dict[str, Any], *, more: bool = False) -> dict[str, Any]:
    next_page = "MjA" if more else None
    ids = {"first_id": item["id"], "last_id": item["id"]}
    return {"data": [item], **ids, "has_more": more, "next_page": next_page}


def _turn(created_at: int | str) -> dict[str, Any]:
    return {"id": 21, "created_at": created_at, **_SAID}


def _snippet(created_at: int | str) -> dict[str, Any]:
    return {"id": 3, "created_at": created_at, **_FOUND}


# Responses by operation, in Format A and in Format B.
ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "listMemories": ({"object": "list", **_page(_MEMORY_A)}, _page(_MEMORY_B)),
    "getMemory": ({**_MEMORY_A, **_SUMMARY}, {**_MEMORY_B, **_SUMMARY}),
    "deleteMemory": (
        {"object": "memory", "id": "trip/oslo", "deleted": True},
        {"id": "trip/oslo", "type": "memory_deleted"},
    ),
    "listMemoryTurns": (
        {"object": "list", **_page({"object": "memory.turn", **_turn(_HOUR_A)}, more=True)},
        _page({"type": "memory_turn", **_turn(_HOUR_B)}, more=True),
    ),
    "searchMemory": (
        {"object": "list", **_page({"object": "memory.snippet", **_snippet(_DAY_A)})},
        _page({"type": "memory_snippet", **_snippet(_DAY_B)}),
    ),
    "getProfile": (
        {"object": "memory.profile", "facts": [{**_FACT, "updated_at": _DAY_A}]},
        {"type": "memory_profile", "facts": [{**_FACT, "updated_at": _DAY_B}]},
    ),
    "updateFact": (
        {"object": "memory.fact", **_FACT, **CORRECTION, "updated_at": _DAY_A},
        {"type": "memory_fact", **_FACT, **CORRECTION, "updated_at": _DAY_B},
    ),
    "deleteFact": (
        {"object": "memory.fact", "id": _FACT["id"], "deleted": True},
        {"id": _FACT["id"], "type": "memory_fact_deleted"},
    ),
    "deleteProfile": (
        {"object": "memory.profile", "deleted": True},
        {"type": "memory_profile_deleted"},
    ),
}
