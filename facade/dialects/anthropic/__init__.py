"""Anthropic's Messages, Files and Models APIs: translation between JSON and the canonical model."""

from facade.dialects.anthropic.errors import render_error
from facade.dialects.anthropic.files import (
    names_scope,
    parse_file_list,
    render_deleted_file,
    render_file,
    render_file_list,
)
from facade.dialects.anthropic.limits import LIMIT_HEADERS, limit_headers
from facade.dialects.anthropic.models import render_model, render_model_list
from facade.dialects.anthropic.paths import FIELD_NAMES
from facade.dialects.anthropic.request import MESSAGES_READER, parse_count_tokens, parse_messages
from facade.dialects.anthropic.response import render_count, render_message
from facade.dialects.anthropic.stream import MessageStream
from facade.dialects.anthropic.types import CountTokensBody, MessagesBody

__all__ = [
    "FIELD_NAMES",
    "LIMIT_HEADERS",
    "MESSAGES_READER",
    "CountTokensBody",
    "MessageStream",
    "MessagesBody",
    "limit_headers",
    "names_scope",
    "parse_count_tokens",
    "parse_file_list",
    "parse_messages",
    "render_count",
    "render_deleted_file",
    "render_error",
    "render_file",
    "render_file_list",
    "render_message",
    "render_model",
    "render_model_list",
]
