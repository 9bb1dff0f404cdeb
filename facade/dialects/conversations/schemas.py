"""JSON schemas of conversations and their items."""

from typing import Final

from facade.dialects.json_schemas import (
    BOOLEAN,
    NAME,
    STRING,
    UNIX_SECONDS,
    NamedSchema,
    array,
    described,
    open_object,
)

CONVERSATION: Final = NamedSchema(
    "Conversation",
    open_object(
        {
            "id": NAME,
            "object": {"const": "conversation"},
            "created_at": UNIX_SECONDS,
            "metadata": {"type": "object", "additionalProperties": STRING},
        }
    ),
)
DELETED: Final = NamedSchema(
    "DeletedConversation",
    open_object(
        {"id": NAME, "object": {"const": "conversation.deleted"}, "deleted": {"const": True}}
    ),
)
ITEM: Final = NamedSchema("ConversationItem", open_object({"id": NAME, "type": NAME}))
_PLACE = described(STRING, "Empty if the page is empty.")


def _page(name: str, element: NamedSchema) -> NamedSchema:
    """Return the schema of a page of objects."""
    return NamedSchema(
        name,
        open_object(
            {
                "object": {"const": "list"},
                "data": array(element.ref),
                "first_id": _PLACE,
                "last_id": _PLACE,
                "has_more": BOOLEAN,
            }
        ),
    )


ITEMS: Final = _page("ConversationItems", ITEM)
CONVERSATIONS: Final = _page("Conversations", CONVERSATION)
