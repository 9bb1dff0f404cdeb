"""JSON schemas of stored chat completions, and of the lists of them and of their messages."""

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
from facade.dialects.stored_chats.queries import DEFAULT_LIMIT, MAX_LIMIT

CHAT: Final = NamedSchema(
    "StoredChatCompletion",
    open_object(
        {
            "id": NAME,
            "object": {"const": "chat.completion"},
            "choices": array(OBJECT),
            "metadata": {"type": "object", "additionalProperties": STRING},
        }
    ),
)
DELETED: Final = NamedSchema(
    "DeletedChatCompletion",
    open_object(
        {"id": NAME, "object": {"const": "chat.completion.deleted"}, "deleted": {"const": True}}
    ),
)


def _list_of(name: str, item: JsonObject) -> NamedSchema:
    return NamedSchema(
        name,
        open_object(
            {
                "object": {"const": "list"},
                "data": array(item),
                "first_id": OPTIONAL_STRING,
                "last_id": OPTIONAL_STRING,
                "has_more": BOOLEAN,
            }
        ),
    )


CHATS: Final = _list_of("StoredChatCompletions", CHAT.ref)
MESSAGES: Final = _list_of("StoredChatMessages", OBJECT)
LIMIT: Final[JsonObject] = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_LIMIT,
    "default": DEFAULT_LIMIT,
}
ORDER: Final[JsonObject] = {"enum": ["asc", "desc"], "default": "asc"}
