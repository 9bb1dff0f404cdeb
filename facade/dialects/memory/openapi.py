"""The memory endpoints' part of the OpenAPI document."""

from typing import Any

from facade.dialects.memory.examples import ANSWERS, SEARCH
from facade.dialects.memory.requests import DEFAULT_LIMIT, MAX_LIMIT, SearchBody

_PREFIX = "MemoryFormat"
_STRING = {"type": "string"}
_INTEGER = {"type": "integer", "minimum": 0}
_BOOLEAN = {"type": "boolean"}
_MEMORY_ID = {
    "name": "memory_id",
    "in": "path",
    "required": True,
    "description": "Name of the memory, percent-encoded; may contain slashes.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 256},
}
_PAGE = [
    {
        "name": "limit",
        "in": "query",
        "schema": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_LIMIT,
            "default": DEFAULT_LIMIT,
        },
    },
    {
        "name": "page",
        "in": "query",
        "description": "Page token: the `next_page` of the previous page.",
        "schema": {"type": "string", "minLength": 1},
    },
]
_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["user", "assistant"]},
        "name": _STRING,
        "content": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": {
                        "enum": [
                            *("text", "refusal", "image", "document", "audio", "video"),
                            *("tool_use", "tool_result", "other"),
                        ]
                    }
                },
            },
        },
    },
}
_FACT = {
    "topic": _STRING,
    "sub_topic": _STRING,
    "value": _STRING,
    "sources": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["memory_id", "turn"],
            "properties": {"memory_id": _STRING, "turn": _INTEGER},
        },
    },
}


def paths(compat_version: dict[str, Any], errors: dict[str, Any]) -> dict[str, Any]:
    """Return the paths, which share the version header and the error responses."""

    def operation(name: str, summary: str, *parameters: dict[str, Any]) -> dict[str, Any]:
        in_a, in_b = ANSWERS[name]
        schema = {"anyOf": [{"$ref": _ref(name, "A")}, {"$ref": _ref(name, "B")}]}
        examples = {"Authorization": {"value": in_a}, "x-api-key": {"value": in_b}}
        content = {"application/json": {"schema": schema, "examples": examples}}
        return {
            "summary": summary,
            "operationId": name,
            "parameters": [compat_version, *parameters],
            "responses": {"200": {"description": "Success", "content": content}, **errors},
        }

    search = operation("searchMemory", "Search the archived turns of a memory", _MEMORY_ID)
    body = {"schema": {"$ref": f"#/components/schemas/{_PREFIX}Search"}, "example": SEARCH}
    search["requestBody"] = {"required": True, "content": {"application/json": body}}
    one = "/beta/v1/memories/{memory_id}"
    return {
        "/beta/v1/memories": {
            "get": operation("listMemories", "List the caller's memories, latest first", *_PAGE)
        },
        one: {
            "get": operation("getMemory", "Get a memory, with its summary", _MEMORY_ID),
            "delete": operation("deleteMemory", "Delete a memory", _MEMORY_ID),
        },
        f"{one}/turns": {
            "get": operation(
                "listMemoryTurns", "List the turns of a memory, newest first", _MEMORY_ID, *_PAGE
            )
        },
        f"{one}/search": {"post": search},
        "/beta/v1/memory/profile": {
            "get": operation(
                "getProfile", "Get the caller's profile: the facts known about the user"
            ),
            "delete": operation("deleteProfile", "Delete the caller's profile"),
        },
    }


def schemas() -> dict[str, Any]:
    """Return the schemas that the paths refer to."""
    named = {f"{_PREFIX}Search": SearchBody.model_json_schema()}
    for letter in "AB":
        for name, schema in _answers(letter).items():
            named[f"{_PREFIX}{letter}.{name}"] = schema
    return named


def _ref(name: str, letter: str) -> str:
    return f"#/components/schemas/{_PREFIX}{letter}.{name}"


def _answers(letter: str) -> dict[str, dict[str, Any]]:
    time = {"type": "integer"} if letter == "A" else {"type": "string", "format": "date-time"}
    memory = {
        "id": _STRING,
        "created_at": time,
        "updated_at": time,
        "turns": _INTEGER,
        "summarised": _INTEGER,
        "pending": _INTEGER,
        "state": {"enum": ["idle", "writing", "summarising"]},
    }
    turn = {
        "id": _INTEGER,
        "created_at": time,
        "open": {"type": "boolean", "description": "Whether tool results are still missing."},
        "messages": {"type": "array", "items": _MESSAGE},
    }
    snippet = {"id": _INTEGER, "created_at": time, "text": _STRING, "score": {"type": "number"}}
    whole = {**memory, "summary": {"type": ["string", "null"]}, "degraded": _BOOLEAN}
    facts = {"type": "array", "items": _object({**_FACT, "updated_at": time})}
    deleted = {"deleted": {"const": True}} if letter == "A" else {}
    gone = "" if letter == "A" else ".deleted"
    return {
        "listMemories": _list(letter, _of(letter, "memory", memory)),
        "getMemory": _of(letter, "memory", whole),
        "deleteMemory": _of(letter, f"memory{gone}", {"id": _STRING, **deleted}),
        "listMemoryTurns": _list(letter, _of(letter, "memory.turn", turn)),
        "searchMemory": _list(letter, _of(letter, "memory.snippet", snippet)),
        "getProfile": _of(letter, "memory.profile", {"facts": facts}),
        "deleteProfile": _of(letter, f"memory.profile{gone}", deleted),
    }


def _of(letter: str, kind: str, properties: dict[str, Any]) -> dict[str, Any]:
    named = {"object": {"const": kind}}
    if letter == "B":
        named = {"type": {"const": kind.replace(".", "_")}}
    return _object({**named, **properties})


def _list(letter: str, item: dict[str, Any]) -> dict[str, Any]:
    place = {"type": ["string", "integer", "null"]}
    return _object(
        {
            **({"object": {"const": "list"}} if letter == "A" else {}),
            "data": {"type": "array", "items": item},
            "first_id": place,
            "last_id": place,
            "has_more": _BOOLEAN,
            "next_page": {"type": ["string", "null"]},
        }
    )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": properties,
    }
