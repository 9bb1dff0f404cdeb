"""Parsing and validation of the requests of administration."""

from collections.abc import Mapping, Sequence
from functools import cache

from google.protobuf.message import Message
from pydantic import BaseModel, TypeAdapter, ValidationError

from facade.dialects.admin.table import Arguments, Endpoint
from facade.dialects.validation import read, to_gateway_error
from services.common.errors import invalid

_EMPTY = b"{}"


def parse(
    endpoint: Endpoint, ids: Mapping[str, str], query: Sequence[tuple[str, str]], body: bytes
) -> Message:
    """Return the gRPC request of an HTTP request.

    Args:
        endpoint: the endpoint.
        ids: the ids in the path, decoded.
        query: names and values of the query.
        body: the body, b"" if the endpoint has none.

    Raises:
        GatewayError: invalid, naming the field or the parameter.
    """
    parsed: BaseModel | None = None
    if endpoint.body is not None:
        parsed = read(_adapter(endpoint.body), body or _EMPTY)
    return endpoint.request(Arguments(ids, _parse_query(endpoint, query), parsed))


def _parse_query(endpoint: Endpoint, query: Sequence[tuple[str, str]]) -> BaseModel:
    values: dict[str, str] = {}
    for name, value in query:
        if name not in endpoint.query.model_fields:
            raise invalid(name, f"{name}: is not a known parameter")
        if name in values:
            raise invalid(name, f"{name}: must be given only once")
        values[name] = value
    try:
        return _adapter(endpoint.query).validate_python(values)
    except ValidationError as error:
        raise to_gateway_error(error) from None


@cache
def _adapter(kind: type[BaseModel]) -> TypeAdapter[BaseModel]:
    return TypeAdapter(kind)
