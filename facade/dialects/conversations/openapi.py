"""The part of the OpenAPI document about stored conversations."""

from typing import Any

from facade.dialects.stored_responses.openapi import INCLUDE, ITEM_PAGE

_STRING = {"type": "string", "minLength": 1}
_CONVERSATION_ID = {
    "name": "conversation_id",
    "in": "path",
    "required": True,
    "schema": _STRING,
}
_ITEM_ID = {"name": "item_id", "in": "path", "required": True, "schema": _STRING}
_CONVERSATION = {
    "type": "object",
    "required": ["id", "object", "created_at", "metadata"],
    "properties": {
        "id": _STRING,
        "object": {"const": "conversation"},
        "created_at": {"type": "integer", "description": "Unix seconds."},
        "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
_DELETED = {
    "type": "object",
    "required": ["id", "object", "deleted"],
    "properties": {
        "id": _STRING,
        "object": {"const": "conversation.deleted"},
        "deleted": {"const": True},
    },
}
_ITEM = {
    "type": "object",
    "required": ["id", "type"],
    "properties": {"id": _STRING, "type": _STRING},
}
_PAGE = {
    "type": "object",
    "required": ["object", "data", "first_id", "last_id", "has_more"],
    "properties": {
        "object": {"const": "list"},
        "data": {"type": "array", "items": {"$ref": "#/components/schemas/ConversationItem"}},
        "first_id": {"type": "string", "description": "Empty if the page is empty."},
        "last_id": {"type": "string", "description": "Empty if the page is empty."},
        "has_more": {"type": "boolean"},
    },
}


def paths(
    compat_version: dict[str, Any],
    errors: dict[str, Any],
    bodies: tuple[dict[str, Any], dict[str, Any], dict[str, Any]],
) -> dict[str, Any]:
    """Return the paths, which share the version header and the error responses.

    Args:
        compat_version: the header.
        errors: the error responses.
        bodies: the schemas of a new conversation, of an update, and of items.
    """
    create, update, items = bodies

    def operation(
        name: str,
        summary: str,
        schema: str,
        *parameters: dict[str, Any],
        body: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
        described = {
            "summary": summary,
            "operationId": name,
            "parameters": [compat_version, *parameters],
            "responses": {"200": {"description": "Success", "content": content}, **errors},
        }
        if body is not None:
            described["requestBody"] = {
                "required": body is not create,
                "content": {"application/json": {"schema": body}},
            }
        return described

    one = "/beta/v1/conversations/{conversation_id}"
    whole, deleted, item, page = (
        "Conversation",
        "DeletedConversation",
        "ConversationItem",
        "ConversationItems",
    )
    return {
        "/beta/v1/conversations": {
            "post": operation("createConversation", "Create a conversation", whole, body=create)
        },
        one: {
            "get": operation("getConversation", "Get a conversation", whole, _CONVERSATION_ID),
            "post": operation(
                "updateConversation",
                "Replace the metadata of a conversation",
                whole,
                _CONVERSATION_ID,
                body=update,
            ),
            "delete": operation(
                "deleteConversation", "Delete a conversation", deleted, _CONVERSATION_ID
            ),
        },
        f"{one}/items": {
            "post": operation(
                "createConversationItems",
                "Append items to a conversation",
                page,
                _CONVERSATION_ID,
                INCLUDE,
                body=items,
            ),
            "get": operation(
                "listConversationItems",
                "List the items of a conversation",
                page,
                _CONVERSATION_ID,
                *ITEM_PAGE,
            ),
        },
        f"{one}/items/{{item_id}}": {
            "get": operation(
                "getConversationItem",
                "Get an item of a conversation",
                item,
                _CONVERSATION_ID,
                _ITEM_ID,
                INCLUDE,
            ),
            "delete": operation(
                "deleteConversationItem",
                "Delete an item of a conversation",
                whole,
                _CONVERSATION_ID,
                _ITEM_ID,
            ),
        },
    }


def schemas() -> dict[str, Any]:
    """Return the schemas that the paths refer to."""
    return {
        "Conversation": _CONVERSATION,
        "DeletedConversation": _DELETED,
        "ConversationItem": _ITEM,
        "ConversationItems": _PAGE,
    }
