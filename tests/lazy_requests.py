"""The lazy requests of parsed bodies."""

from facade.dialects.parsed_request import ParsedRequest
from services.common.messages.lazy_request import LazyRequest


def lazy_of(parsed: ParsedRequest) -> LazyRequest | None:
    """Return the request if its conversation is sent as its caller wrote it, else None."""
    return parsed.request if isinstance(parsed.request, LazyRequest) else None
