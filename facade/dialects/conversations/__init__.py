"""Stored conversations in OpenAI's format: translation of requests and responses."""

from facade.dialects.conversations.answers import (
    render_conversation,
    render_conversations,
    render_deleted,
    render_item,
    render_items,
)
from facade.dialects.conversations.errors import capacity_error, conversation_error, item_error
from facade.dialects.conversations.requests import (
    Items,
    parse_create,
    parse_items,
    parse_page,
    parse_update,
    stored_items,
)

__all__ = [
    "Items",
    "capacity_error",
    "conversation_error",
    "item_error",
    "parse_create",
    "parse_items",
    "parse_page",
    "parse_update",
    "render_conversation",
    "render_conversations",
    "render_deleted",
    "render_item",
    "render_items",
    "stored_items",
]
