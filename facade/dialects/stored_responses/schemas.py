"""JSON schemas of stored responses, of the lists of their items, and of their queries."""

from typing import Final

from facade.dialects.json_schemas import (
    BOOLEAN,
    NAME,
    OBJECT,
    OPTIONAL_STRING,
    STRING,
    JsonObject,
    NamedSchema,
    array,
    open_object,
)
from facade.dialects.stored_responses.queries import DEFAULT_LIMIT, MAX_LIMIT

RESPONSE: Final = NamedSchema(
    "StoredResponse",
    open_object(
        {
            "id": NAME,
            "object": {"const": "response"},
            "status": {
                "enum": ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
            },
            "output": array(OBJECT),
        }
    ),
)
DELETED: Final = NamedSchema(
    "DeletedResponse",
    open_object({"id": NAME, "object": {"const": "response"}, "deleted": {"const": True}}),
)
ITEMS: Final = NamedSchema(
    "ResponseItems",
    open_object(
        {
            "object": {"const": "list"},
            "data": array(OBJECT),
            "first_id": OPTIONAL_STRING,
            "last_id": OPTIONAL_STRING,
            "has_more": BOOLEAN,
        }
    ),
)

INCLUDE: Final = array(STRING)
STREAM: Final[JsonObject] = {"type": "boolean", "default": False}
STARTING_AFTER: Final[JsonObject] = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
LIMIT: Final[JsonObject] = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_LIMIT,
    "default": DEFAULT_LIMIT,
}
ORDER: Final[JsonObject] = {"enum": ["asc", "desc"], "default": "desc"}
