"""Parsing and validation of the requests of administration."""

from collections.abc import Mapping, Sequence
from functools import cache

from pydantic import BaseModel, TypeAdapter, ValidationError

from facade.dialects.admin.arguments import Arguments
from facade.dialects.validation import read, to_gateway_error
from services.common.errors import invalid

_EMPTY = b"{}"


def parse(
    query_type: type[BaseModel],
    body_type: type[BaseModel] | None,
    ids: Mapping[str, str],
    query: Sequence[tuple[str, str]],
    body: bytes,
) -> Arguments:
    """Return the validated parts of an HTTP request.

    Args:
        query_type: type of the query.
        body_type: type of the body; None without a body.
        ids: the ids in the path, decoded.
        query: names and values of the query.
        body: the body, b"" if the endpoint has none.

    Raises:
        GatewayError: invalid, naming the field or the parameter.
    """
    parsed: BaseModel | None = None
    if body_type is not None:
        parsed = read(_adapter(body_type), body or _EMPTY)
    return Arguments(ids, _parse_query(query_type, query), parsed)


def _parse_query(query_type: type[BaseModel], query: Sequence[tuple[str, str]]) -> BaseModel:
    values: dict[str, str] = {}
    for name, value in query:
        if name not in query_type.model_fields:
            raise invalid(name, f"{name}: is not a known parameter")
        if name in values:
            raise invalid(name, f"{name}: must be given only once")
        values[name] = value
    try:
        return _adapter(query_type).validate_python(values)
    except ValidationError as error:
        raise to_gateway_error(error) from None


@cache
def _adapter(kind: type[BaseModel]) -> TypeAdapter[BaseModel]:
    return TypeAdapter(kind)
