"""Stored responses in OpenAI's format: translation of their queries, objects and events."""

from facade.dialects.stored_responses.background import BackgroundRenderer, presentation
from facade.dialects.stored_responses.content import (
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
from facade.dialects.stored_responses.replay import last_event, replay

__all__ = [
    "BackgroundRenderer",
    "cancel_error",
    "continued_error",
    "is_appended",
    "item_error",
    "last_event",
    "new_response",
    "parse_items_query",
    "parse_retrieve_query",
    "presentation",
    "render_deleted",
    "render_items",
    "render_stored",
    "replay",
    "response_content",
    "stored_error",
    "with_status",
]
