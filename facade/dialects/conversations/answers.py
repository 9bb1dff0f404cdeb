"""Stored conversations and their items as JSON."""

from collections.abc import Iterable

import orjson

from gateway.memory.v1.conversations_pb2 import StoredConversation
from gateway.memory.v1.responses_pb2 import ResponseItem


def render_conversation(conversation: StoredConversation) -> bytes:
    """Return the JSON of a conversation object."""
    return orjson.dumps(
        {
            "id": conversation.id,
            "object": "conversation",
            "created_at": conversation.created_at_ms // 1000,
            "metadata": orjson.Fragment(conversation.metadata),
        }
    )


def render_deleted(conversation_id: str) -> bytes:
    """Return the JSON that confirms the deletion of a conversation."""
    return orjson.dumps({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


def render_item(item: ResponseItem) -> bytes:
    """Return the JSON of an item, with its id in the conversation."""
    body = orjson.loads(item.json)
    if body.get("id") == item.id:
        return item.json
    return orjson.dumps({**body, "id": item.id})


def render_items(items: Iterable[ResponseItem], *, has_more: bool) -> bytes:
    """Return the JSON of a page of items."""
    listed = list(items)
    return orjson.dumps(
        {
            "object": "list",
            "data": [orjson.Fragment(render_item(item)) for item in listed],
            # The types of OpenAI's clients have no null here.
            "first_id": listed[0].id if listed else "",
            "last_id": listed[-1].id if listed else "",
            "has_more": has_more,
        }
    )
