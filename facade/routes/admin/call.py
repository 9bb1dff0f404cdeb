"""The handler of the endpoints of administration and of reports, each of which calls one RPC."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
import orjson
from google.protobuf.message import Message
from pydantic import BaseModel

from facade.bodies import ReceivedBody
from facade.dialects import admin
from facade.dialects.admin import Arguments
from facade.dialects.admin.bodies import Query
from facade.dialects.json_schemas import JsonObject, NamedSchema
from facade.endpoint import Answer, Body, EndpointSpec, path_parameter
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.routes.generation import check_json, rpc_metadata
from services.common.client_address import FORWARDED_KEY, TrustedProxies
from services.common.errors import from_rpc_error
from services.common.grpc.channels import Metadata

_PREFIX = "/admin/v1"
# Prefix of the names of schemas in the OpenAPI document.
_SCHEMAS = "Admin."
# Maximum size of a body: lists of models are the largest.
_MAX_BODY = 256 << 10

_ID = re.compile(r"{(\w+)}")
_ID_SCHEMA = {"type": "string", "minLength": 1, "maxLength": 64}


@dataclass(frozen=True, slots=True)
class _Call:
    """The RPC of an endpoint, and the translation of its request and response."""

    stub: str
    rpc: str
    request: Callable[[Arguments], Message]
    render: Callable[[Any], JsonObject]
    query: type[BaseModel]
    body: type[BaseModel] | None
    body_may_be_empty: bool


def rpc_endpoint(
    method: str,
    path: str,
    operation_id: str,
    summary: str,
    *,
    rpc: str,
    request: Callable[[Arguments], Message],
    render: Callable[[Any], JsonObject],
    answer: JsonObject,
    stub: str = "admin",
    prefix: str = _PREFIX,
    schemas: str = _SCHEMAS,
    query: type[BaseModel] = Query,
    body: type[BaseModel] | None = None,
    body_may_be_empty: bool = False,
    example: JsonObject | None = None,
) -> EndpointSpec:
    """Return the spec of an endpoint that calls one RPC.

    Args:
        method: HTTP method.
        path: below `prefix`, with the names of ids in braces.
        operation_id: name in the OpenAPI document.
        summary: one line for people.
        rpc: name of the RPC.
        request: returns the request message.
        render: returns the JSON object of the response message.
        answer: JSON schema of that object.
        stub: the attribute of the facade's context with the gRPC stub.
        prefix: beginning of the endpoint's path.
        schemas: prefix of the names of its schemas.
        query: type of the query.
        body: type of the JSON body, or None without a body.
        body_may_be_empty: whether a request without a body counts as `{}`.
        example: example of the body, or None.
    """
    call = _Call(stub, rpc, request, render, query, body, body_may_be_empty)
    return EndpointSpec(
        method=method,
        path=prefix + path,
        handler=partial(_handle, call),
        operation_id=operation_id,
        summary=summary,
        parameters=[path_parameter(name, _ID_SCHEMA) for name in _ID.findall(path)],
        query=query,
        body=None
        if body is None
        else Body(body, is_required=not body_may_be_empty, example=example),
        answer=Answer("Success", [NamedSchema(schemas + operation_id, answer)]),
        schema_prefix=schemas,
    )


async def _handle(call: _Call, exchange: Exchange) -> Response:
    """Parse a request, call the service, return its response."""
    body = b""
    if call.body is not None:
        async with ReceivedBody(exchange, _MAX_BODY, "") as held:
            body = held.pop()
        if body or not call.body_may_be_empty:
            check_json(exchange)
    query = [*exchange.query.items()]
    arguments = admin.parse(call.query, call.body, exchange.path_values, query, body)
    method = getattr(getattr(exchange.context, call.stub), call.rpc)
    try:
        response: Any = await method(call.request(arguments), metadata=_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        variables = [*exchange.path_values]
        raise admin.to_caller_error(from_rpc_error(error), variables) from None
    return JsonResponse(orjson.dumps(call.render(response)))


def _metadata(exchange: Exchange) -> Metadata:
    """Return the metadata of an RPC, with the address of the caller for the audit log."""
    proxies = TrustedProxies(exchange.context.settings.server.trusted_proxies)
    peer, forwarded = exchange.connection.peer_address, exchange.joined_header(FORWARDED_KEY)
    # Of a peer that has left, it is unknown whether its header may be believed.
    address = proxies.client_address(peer, forwarded) if peer else ""
    return (*rpc_metadata(exchange), (FORWARDED_KEY, address))
