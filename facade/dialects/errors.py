"""Errors in the formats of the dialects."""

from facade.credentials import ApiFormat
from facade.dialects import anthropic, articles, gemini, openai
from services.common.errors import GatewayError


def render_error(api_format: ApiFormat, error: GatewayError, request_id: str) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error in a format."""
    match api_format:
        case ApiFormat.OPENAI:
            return openai.render_error(error, request_id)
        case ApiFormat.ANTHROPIC:
            return anthropic.render_error(error, request_id)
        case ApiFormat.GOOGLE:
            return gemini.render_error(error, request_id)
        case ApiFormat.ENVELOPE:
            return articles.render_error(error)
