"""The callers' dialects: JSON to the canonical model and back, each in its own package."""

from facade.credentials import Shape
from facade.dialects import anthropic, articles, openai
from services.common.errors import GatewayError


def render_error(shape: Shape, error: GatewayError, request_id: str) -> tuple[int, bytes]:
    """Return the HTTP status and the body that tell of a failure in a shape."""
    match shape:
        case Shape.A:
            return openai.render_error(error, request_id)
        case Shape.B:
            return anthropic.render_error(error, request_id)
        case Shape.ENVELOPE:
            return articles.render_error(error)
