"""Headers passed between a caller and a provider of the same dialect.

See `services.common.dialect_headers` for the list.
"""

from gateway.conversation.v1.conversation_pb2 import Dialect
from gateway.inference.v1.inference_pb2 import RouteInfo
from services.common import dialect_headers
from services.common.errors import UpstreamError
from services.inference.providers.base import Call


def request_headers(call: Call, dialect: Dialect.ValueType) -> list[tuple[str, str]]:
    """Return the caller's headers for a provider of a dialect.

    They are validated here, as they may come from gRPC callers and from parameters of fallback
    steps.
    """
    request = call.request
    if request.dialect != dialect or not request.headers:
        return []
    return list(dialect_headers.to_provider(dialect, request.headers.items()).items())


def set_route_head(route: RouteInfo, call: Call, dialect: Dialect.ValueType) -> None:
    """Add the response headers of a provider to the caller's route info.

    Args:
        route: where to.
        call: the answered one.
        dialect: the provider's.
    """
    headers, upstream_request_id = answer_head(call, dialect)
    if upstream_request_id:
        route.upstream_request_id = upstream_request_id
    if headers:
        route.headers.update(headers)


def add_head(error: UpstreamError, call: Call, dialect: Dialect.ValueType) -> None:
    """Add the response headers of a provider to its error."""
    error.headers, error.upstream_request_id = answer_head(call, dialect)


def answer_head(call: Call, dialect: Dialect.ValueType) -> tuple[dict[str, str], str]:
    """Return the response headers of the caller's dialect, and the provider's request id or ""."""
    answer_headers = call.answer_headers
    if answer_headers is None:
        return {}, ""
    headers = (
        dialect_headers.of_answer(dialect, answer_headers)
        if call.request.dialect == dialect
        else {}
    )
    return headers, dialect_headers.request_id_of(dialect, answer_headers)
