"""OpenAI's chat completions, embeddings, errors, files, uploads and models (Format A): translation
between JSON and protobuf.
"""

from facade.dialects.openai.embeddings import (
    EMBEDDING_NAMES,
    EmbeddingsRequest,
    parse_embeddings,
    render_embeddings,
)
from facade.dialects.openai.errors import render_error
from facade.dialects.openai.files import (
    CURSORS,
    parse_file_list,
    render_deleted_file,
    render_file,
    render_file_list,
)
from facade.dialects.openai.functions import FunctionChatStream, render_function_completion
from facade.dialects.openai.limits import LIMIT_HEADERS, limit_headers
from facade.dialects.openai.models import render_model, render_model_list
from facade.dialects.openai.paths import FIELD_NAMES, FUNCTION_NAMES
from facade.dialects.openai.request import CHAT_READER, parse_chat
from facade.dialects.openai.response import render_completion
from facade.dialects.openai.stream import ChatStream
from facade.dialects.openai.types import ChatRequest
from facade.dialects.openai.uploads import (
    PART_NAMES,
    UPLOAD_EXAMPLE,
    UPLOAD_NAMES,
    UploadBody,
    UploadCompletionBody,
    parse_completion,
    parse_upload,
    render_part,
    render_upload,
)

__all__ = [
    "CHAT_READER",
    "CURSORS",
    "EMBEDDING_NAMES",
    "FIELD_NAMES",
    "FUNCTION_NAMES",
    "LIMIT_HEADERS",
    "PART_NAMES",
    "UPLOAD_EXAMPLE",
    "UPLOAD_NAMES",
    "ChatRequest",
    "ChatStream",
    "EmbeddingsRequest",
    "FunctionChatStream",
    "UploadBody",
    "UploadCompletionBody",
    "limit_headers",
    "parse_chat",
    "parse_completion",
    "parse_embeddings",
    "parse_file_list",
    "parse_upload",
    "render_completion",
    "render_deleted_file",
    "render_embeddings",
    "render_error",
    "render_file",
    "render_file_list",
    "render_function_completion",
    "render_model",
    "render_model_list",
    "render_part",
    "render_upload",
]
