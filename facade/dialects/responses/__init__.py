"""OpenAI's responses: translation between JSON and protobuf."""

from facade.dialects.responses.items import add_items, messages_of_items
from facade.dialects.responses.kept_items import conversation_item, references_in
from facade.dialects.responses.passthrough import passthrough_response
from facade.dialects.responses.paths import FIELD_NAMES, ContinuedPaths, load_paths
from facade.dialects.responses.request import RESPONSE_READER, parse_request
from facade.dialects.responses.response import failed_response, render_response
from facade.dialects.responses.state import (
    Echo,
    Reference,
    ResponseState,
    StoredConversation,
)
from facade.dialects.responses.stream import ResponseStream
from facade.dialects.responses.types import ResponseRequest

__all__ = [
    "FIELD_NAMES",
    "RESPONSE_READER",
    "ContinuedPaths",
    "Echo",
    "Reference",
    "ResponseRequest",
    "ResponseState",
    "ResponseStream",
    "StoredConversation",
    "add_items",
    "conversation_item",
    "failed_response",
    "load_paths",
    "messages_of_items",
    "parse_request",
    "passthrough_response",
    "references_in",
    "render_response",
]
