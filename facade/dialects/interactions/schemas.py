"""JSON schemas of interactions and of their queries."""

from typing import Final

from facade.dialects.json_schemas import (
    NAME,
    OBJECT,
    STRING,
    JsonObject,
    NamedSchema,
    array,
    open_object,
)

INTERACTION: Final = NamedSchema(
    "Interaction",
    open_object(
        {
            "id": NAME,
            "object": {"const": "interaction"},
            "status": {
                "enum": [
                    *("queued", "in_progress", "requires_action", "completed"),
                    *("incomplete", "failed", "cancelled"),
                ]
            },
            "model": STRING,
            "created": STRING,
            "updated": STRING,
            "steps": array(OBJECT),
        }
    ),
)

FLAG: Final[JsonObject] = {"type": "boolean", "default": False}
EVENT_ID: Final[JsonObject] = {"type": "string", "pattern": "^[0-9]{1,9}$"}
