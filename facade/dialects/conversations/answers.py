"""Stored conversations and their items as JSON."""

from collections.abc import Iterable, Sequence

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


def render_conversations(conversations: Sequence[StoredConversation], *, has_more: bool) -> bytes:
    """Return the JSON of a page of conversations."""
    return _page([(one.id, render_conversation(one)) for one in conversations], has_more=has_more)


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
    return _page([(item.id, render_item(item)) for item in items], has_more=has_more)


def _page(objects: Sequence[tuple[str, bytes]], *, has_more: bool) -> bytes:
    """Return the JSON of a page of objects, of which each has an id and its JSON."""
    return orjson.dumps(
        {
            "object": "list",
            "data": [orjson.Fragment(json) for _, json in objects],
            # The types of OpenAI's clients have no null here.
            "first_id": objects[0][0] if objects else "",
            "last_id": objects[-1][0] if objects else "",
            "has_more": has_more,
        }
    )
