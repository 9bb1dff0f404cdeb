"""Google's Gemini API (`generateContent`): translation between JSON and the canonical model."""

from facade.dialects.gemini.embeddings import (
    BatchEmbedContentsBody,
    EmbedContentBody,
    parse_batch_embed,
    parse_embed,
    render_embeddings,
)
from facade.dialects.gemini.errors import render_error
from facade.dialects.gemini.files import (
    GOOGLE_CURSORS,
    file_id_in_path,
    parse_file_list,
    render_created_file,
    render_deleted_file,
    render_file,
    render_file_list,
)
from facade.dialects.gemini.models import model_name, render_model, render_model_list
from facade.dialects.gemini.paths import EMBEDDING_NAMES, FIELD_NAMES
from facade.dialects.gemini.request import parse_count_tokens, parse_generate
from facade.dialects.gemini.response import render_blocked, render_content, render_count
from facade.dialects.gemini.spelling import camel_case
from facade.dialects.gemini.stream import ContentStream, whole_stream
from facade.dialects.gemini.types import CountTokensBody, GenerateContentBody

__all__ = [
    "EMBEDDING_NAMES",
    "FIELD_NAMES",
    "GOOGLE_CURSORS",
    "BatchEmbedContentsBody",
    "ContentStream",
    "CountTokensBody",
    "EmbedContentBody",
    "GenerateContentBody",
    "camel_case",
    "file_id_in_path",
    "model_name",
    "parse_batch_embed",
    "parse_count_tokens",
    "parse_embed",
    "parse_file_list",
    "parse_generate",
    "render_blocked",
    "render_content",
    "render_count",
    "render_created_file",
    "render_deleted_file",
    "render_embeddings",
    "render_error",
    "render_file",
    "render_file_list",
    "render_model",
    "render_model_list",
    "whole_stream",
]
