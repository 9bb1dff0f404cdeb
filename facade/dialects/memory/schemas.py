"""JSON schemas of memories, turns and profiles in both formats, by operation."""

from collections.abc import Mapping
from typing import Final

from facade.credentials import ApiFormat, Format
from facade.dialects.json_schemas import (
    BOOLEAN,
    COUNT,
    DATE_TIME,
    OPTIONAL_STRING,
    STRING,
    JsonObject,
    NamedSchema,
    array,
    closed_object,
    described,
    open_object,
)
from facade.dialects.memory.requests import DEFAULT_LIMIT, MAX_LIMIT, FactBody, SearchBody

MEMORY_ID: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 256}
LIMIT: Final[JsonObject] = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_LIMIT,
    "default": DEFAULT_LIMIT,
}
SEARCH: Final = NamedSchema("MemoryFormatSearch", SearchBody)
CORRECTION: Final = NamedSchema("MemoryFormatCorrection", FactBody)

_PREFIXES: Mapping[Format, str] = {
    ApiFormat.OPENAI: "MemoryFormatA",
    ApiFormat.ANTHROPIC: "MemoryFormatB",
}
_CONTENT_TYPES = (
    *("text", "refusal", "image", "document", "audio", "video"),
    *("tool_use", "tool_result", "other"),
)
_MESSAGE = open_object(
    {
        "role": {"enum": ["user", "assistant"]},
        "name": STRING,
        "content": array(open_object({"type": {"enum": list(_CONTENT_TYPES)}})),
    },
    optional=["name"],
)
_FACT = {
    "id": STRING,
    "topic": STRING,
    "sub_topic": STRING,
    "value": STRING,
    "sources": array(open_object({"memory_id": STRING, "turn": COUNT})),
}
_PLACE = {"type": ["string", "integer", "null"]}


def answer_schemas(operation_id: str) -> tuple[NamedSchema, NamedSchema]:
    """Return the schemas of an operation's response in OpenAI's and in Anthropic's format."""
    return _OPENAI[operation_id], _ANTHROPIC[operation_id]


def _answers(api_format: Format) -> dict[str, NamedSchema]:
    is_openai = api_format is ApiFormat.OPENAI
    time: JsonObject = {"type": "integer"} if is_openai else DATE_TIME
    memory = {
        "id": STRING,
        "created_at": time,
        "updated_at": time,
        "turns": COUNT,
        "summarised": COUNT,
        "pending": COUNT,
        "state": {"enum": ["idle", "writing", "summarising"]},
    }
    turn = {
        "id": COUNT,
        "created_at": time,
        "open": described(BOOLEAN, "Whether tool results are still missing."),
        "messages": array(_MESSAGE),
    }
    snippet = {"id": COUNT, "created_at": time, "text": STRING, "score": {"type": "number"}}
    whole = {**memory, "summary": OPTIONAL_STRING, "degraded": BOOLEAN}
    fact = {**_FACT, "updated_at": time}
    facts = array(closed_object(fact))
    deleted: JsonObject = {"deleted": {"const": True}} if is_openai else {}
    gone = "" if is_openai else ".deleted"
    schemas = {
        "listMemories": _list(api_format, _of(api_format, "memory", memory)),
        "getMemory": _of(api_format, "memory", whole),
        "deleteMemory": _of(api_format, f"memory{gone}", {"id": STRING, **deleted}),
        "listMemoryTurns": _list(api_format, _of(api_format, "memory.turn", turn)),
        "searchMemory": _list(api_format, _of(api_format, "memory.snippet", snippet)),
        "getProfile": _of(api_format, "memory.profile", {"facts": facts}),
        "updateFact": _of(api_format, "memory.fact", fact),
        "deleteFact": _of(api_format, f"memory.fact{gone}", {"id": STRING, **deleted}),
        "deleteProfile": _of(api_format, f"memory.profile{gone}", deleted),
    }
    prefix = _PREFIXES[api_format]
    return {name: NamedSchema(f"{prefix}.{name}", schema) for name, schema in schemas.items()}


def _of(api_format: Format, kind: str, properties: JsonObject) -> JsonObject:
    if api_format is ApiFormat.OPENAI:
        return closed_object({"object": {"const": kind}, **properties})
    return closed_object({"type": {"const": kind.replace(".", "_")}, **properties})


def _list(api_format: Format, item: JsonObject) -> JsonObject:
    named: JsonObject = {"object": {"const": "list"}} if api_format is ApiFormat.OPENAI else {}
    return closed_object(
        {
            **named,
            "data": array(item),
            "first_id": _PLACE,
            "last_id": _PLACE,
            "has_more": BOOLEAN,
            "next_page": OPTIONAL_STRING,
        }
    )


_OPENAI = _answers(ApiFormat.OPENAI)
_ANTHROPIC = _answers(ApiFormat.ANTHROPIC)
