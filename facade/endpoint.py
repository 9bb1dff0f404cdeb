"""`EndpointSpec`: all that there is to say about one endpoint.

The routes (`facade.app`), the OpenAPI document (`facade.description.openapi`) and the table of
`docs/reference/endpoints.md` are made from the specs in `facade.routes`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from facade import credentials
from facade.credentials import Rules
from facade.dialects.json_schemas import NAME, OBJECT, JsonObject, NamedSchema
from facade.http.exchange import Exchange
from facade.http.responses import Response
from facade.http.router import VARIABLE

# The type of a JSON value: a pydantic model, or a JSON schema.
WireType = type[BaseModel] | NamedSchema | JsonObject
Handler = Callable[[Exchange], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request.

    Attributes:
        wire_type: its type.
        media_type: its media type.
        is_required: whether it must be sent.
        example: an example of it, if any.
    """

    wire_type: WireType
    media_type: str = "application/json"
    is_required: bool = True
    example: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A response with one status.

    Attributes:
        description: one line for people.
        wire_types: its type; several if the credential decides; none without a body.
        media_type: its media type.
        is_streamed: whether it may consist of server-sent events instead.
        examples: examples by their names; the name is "" if there is only one.
    """

    description: str
    wire_types: Sequence[WireType] = (OBJECT,)
    media_type: str = "application/json"
    is_streamed: bool = False
    examples: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EndpointSpec:
    """One endpoint: a method of a path.

    Attributes:
        method: HTTP method.
        path: the path, with names of variables in braces; under `/beta/v1` it has an alias.
        handler: responds to requests.
        is_plain: whether plain requests are served without the router (`facade.http.plain`).
        operation_id: name in the OpenAPI document; "" for pages, which are not part of the API.
        summary: one line for people.
        parameters: OpenAPI's objects for parameters of the query, and for variables of the path
            that are more than text.
        query: the type of the query, whose fields are parameters too.
        body: the body of requests, if they have one.
        answer: the response without an error.
        answer_status: its status.
        other_answers: other responses without an error, by status.
        schema_prefix: prefix of the names of the types' schemas, if other endpoints have types of
            the same names.
    """

    method: str
    path: str
    handler: Handler
    is_plain: bool = False
    operation_id: str = ""
    summary: str = ""
    parameters: Sequence[JsonObject] = ()
    query: type[BaseModel] | None = None
    body: Body | None = None
    answer: Answer = Answer("Success")
    answer_status: int = 200
    other_answers: Mapping[int, Answer] = field(default_factory=lambda: MappingProxyType({}))
    schema_prefix: str = ""

    @property
    def rules(self) -> Rules:
        """The credential, the version header, and the format of errors and of limits' headers.

        They belong to the path, as requests to unknown paths need them too.
        """
        return credentials.rules_of_route(self.path)

    @property
    def documented_path(self) -> str:
        """The path without the patterns of its variables."""
        return VARIABLE.sub(r"{\1}", self.path)

    def all_parameters(self) -> Sequence[JsonObject]:
        """Return OpenAPI's objects for all parameters, except fields of `query`."""
        described = {parameter["name"] for parameter in self.parameters}
        names = [match[1] for match in VARIABLE.finditer(self.path) if match[1] not in described]
        return [*(path_parameter(name, NAME) for name in names), *self.parameters]


def path_parameter(name: str, schema: JsonObject, description: str = "") -> JsonObject:
    """Return OpenAPI's object for a variable of a path."""
    return _parameter(name, "path", schema, description) | {"required": True}


def query_parameter(name: str, schema: JsonObject, description: str = "") -> JsonObject:
    """Return OpenAPI's object for an optional parameter of the query."""
    return _parameter(name, "query", schema, description)


def _parameter(name: str, place: str, schema: JsonObject, description: str) -> JsonObject:
    described = {"description": description} if description else {}
    return {"name": name, "in": place, **described, "schema": schema}
