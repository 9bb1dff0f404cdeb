"""Callers' dialects: translation between their JSON and the canonical model, one package each."""

from collections.abc import Iterable, Mapping

from facade.credentials import ApiFormat
from facade.dialects import anthropic, articles, openai
from gateway.accounts.v1.limits_pb2 import LimitState
from services.common.errors import GatewayError


def render_error(shape: ApiFormat, error: GatewayError, request_id: str) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error in a format."""
    match shape:
        case ApiFormat.OPENAI:
            return openai.render_error(error, request_id)
        case ApiFormat.ANTHROPIC:
            return anthropic.render_error(error, request_id)
        case ApiFormat.ENVELOPE:
            return articles.render_error(error)


def with_limits(
    shape: ApiFormat, headers: Mapping[str, str], limits: Iterable[LimitState], now_ms: int
) -> dict[str, str]:
    """Return headers with those of a caller's limits in place of the provider's.

    Args:
        shape: the format of the answer, whose vendor names the headers.
        headers: those of the answer; where no limit has a header there they stay as they are.
        limits: the caller's.
        now_ms: the time in Unix milliseconds.
    """
    match shape:
        case ApiFormat.OPENAI:
            prefix, own = openai.LIMIT_HEADERS, openai.limit_headers(limits, now_ms)
        case ApiFormat.ANTHROPIC:
            prefix, own = anthropic.LIMIT_HEADERS, anthropic.limit_headers(limits)
        case ApiFormat.ENVELOPE:
            return dict(headers)
    if not own:
        return dict(headers)
    return {name: text for name, text in headers.items() if not name.startswith(prefix)} | own
