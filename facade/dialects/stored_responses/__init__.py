"""Stored responses in OpenAI's format: translation of their queries, objects and events."""

from facade.dialects.stored_responses.content import (
    input_items,
    is_appended,
    new_response,
    render_deleted,
    render_items,
    render_stored,
    response_content,
    with_status,
)
from facade.dialects.stored_responses.errors import (
    cancel_error,
    continued_error,
    item_error,
    stored_error,
)
from facade.dialects.stored_responses.queries import (
    parse_items_query,
    parse_retrieve_query,
)
from facade.dialects.stored_responses.replay import MAX_EVENTS, last_event, pack_events, replay

__all__ = [
    "MAX_EVENTS",
    "cancel_error",
    "continued_error",
    "input_items",
    "is_appended",
    "item_error",
    "last_event",
    "new_response",
    "pack_events",
    "parse_items_query",
    "parse_retrieve_query",
    "render_deleted",
    "render_items",
    "render_stored",
    "replay",
    "response_content",
    "stored_error",
    "with_status",
]
