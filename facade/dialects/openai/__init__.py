"""OpenAI's chat completions, and Format A of errors and models: JSON ⇄ protobuf."""

from facade.dialects.openai.errors import render_error
from facade.dialects.openai.models import render_model, render_model_list
from facade.dialects.openai.request import ParsedRequest, parse_chat
from facade.dialects.openai.response import render_completion
from facade.dialects.openai.stream import ChatStream
from facade.dialects.openai.types import ChatRequest

__all__ = [
    "ChatRequest",
    "ChatStream",
    "ParsedRequest",
    "parse_chat",
    "render_completion",
    "render_error",
    "render_model",
    "render_model_list",
]
