"""The description of one endpoint of administration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from google.protobuf.message import Message
from pydantic import BaseModel

from facade.dialects.admin.bodies import Query

JsonObject = dict[str, Any]


class Arguments(NamedTuple):
    """The validated parts of a request.

    Attributes:
        ids: the ids in the path, by name.
        query: the query, of the endpoint's type.
        body: the body, of the endpoint's type; None if it has no body.
    """

    ids: Mapping[str, str]
    query: Any
    body: Any


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One endpoint.

    Attributes:
        method: HTTP method.
        path: below `/admin/v1`, with the names of ids in braces.
        operation: operationId in the OpenAPI document.
        summary: one line for people.
        stub: the attribute of the facade's context with the gRPC stub.
        rpc: name of the RPC.
        request: returns the request message.
        render: returns the JSON object of the response message.
        answer: JSON schema of that object.
        query: type of the query.
        body: type of the JSON body, or None without a body.
        body_may_be_empty: whether a request without a body counts as `{}`.
    """

    method: str
    path: str
    operation: str
    summary: str
    rpc: str
    request: Callable[[Arguments], Message]
    render: Callable[[Any], JsonObject]
    answer: JsonObject
    stub: str = "admin"
    query: type[BaseModel] = Query
    body: type[BaseModel] | None = None
    body_may_be_empty: bool = False
