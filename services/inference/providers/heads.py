"""Headers of a dialect between a caller and a provider of the same dialect.

See `services.common.dialect_headers` for which these are.
"""

from gateway.conversation.v1.conversation_pb2 import Dialect
from gateway.inference.v1.inference_pb2 import Served
from services.common import dialect_headers
from services.common.errors import UpstreamError
from services.inference.providers.base import Call


def request_headers(call: Call, dialect: Dialect.ValueType) -> list[tuple[str, str]]:
    """Return the caller's headers that go to a provider of a dialect.

    What the request holds is checked here, where all requests come by: it may have come over
    gRPC, and in the parameters of a fallback step.
    """
    request = call.request
    if request.dialect != dialect or not request.headers:
        return []
    return list(dialect_headers.to_provider(dialect, request.headers.items()).items())


def set_served_head(served: Served, call: Call, dialect: Dialect.ValueType) -> None:
    """Write down what a caller is told of the head of the answer that a provider gave.

    Args:
        served: where to.
        call: the answered one.
        dialect: the provider's.
    """
    headers, upstream_request_id = _head(call, dialect)
    if upstream_request_id:
        served.upstream_request_id = upstream_request_id
    if headers:
        served.headers.update(headers)


def add_head(error: UpstreamError, call: Call, dialect: Dialect.ValueType) -> None:
    """Add to a failure what a caller is told of the head of the answer it came with."""
    error.headers, error.upstream_request_id = _head(call, dialect)


def _head(call: Call, dialect: Dialect.ValueType) -> tuple[dict[str, str], str]:
    """Return the headers of the caller's dialect, and the provider's id of the request or ""."""
    heard = call.answer_headers
    if heard is None:
        return {}, ""
    told = dialect_headers.of_answer(dialect, heard) if call.request.dialect == dialect else {}
    return told, dialect_headers.request_id_of(dialect, heard)
