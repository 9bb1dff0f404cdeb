"""The handler of the endpoints of document editing, each of which calls one RPC."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import Message
from pydantic import BaseModel

from facade.bodies import ReceivedBody
from facade.dialects import articles
from facade.dialects.articles import Code, answers, requests
from facade.dialects.articles.edits import EDITS
from facade.dialects.articles.examples import EXAMPLES
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.parsing import check_values
from facade.routes.generation import rpc_metadata
from gateway.articles.v1.articles_pb2 import (
    ApplyEditResponse,
    KeepSessionAliveRequest,
    ReadArticleResponse,
)
from services.common.errors import GatewayError, from_rpc_error
from services.common.process.offload import offload_if
from services.common.text.texts import quoted

PREFIX = "/article/v1/"
MAX_BODY = 2 << 20

# Bodies of at least this size are parsed in a thread.
_LARGE = 128 << 10
_JSON = "application/json"
# Documents of at least this many blocks are rendered in a thread: 10,000 take 20 ms.
_MANY_BLOCKS = 500


@dataclass(frozen=True, slots=True)
class _Call:
    """The RPC of an endpoint, and the translation of its request and response."""

    rpc: str
    body: type[BaseModel]
    request: Callable[[Any], Message]
    data: Callable[[Any, Any], answers.Data]


def rpc_endpoint(
    path: str,
    operation_id: str,
    rpc: str,
    summary: str,
    body: type[BaseModel],
    request: Callable[[Any], Message],
    answer: type[BaseModel],
    data: Callable[[Any, Any], answers.Data],
) -> EndpointSpec:
    """Return the spec of an endpoint that calls one RPC.

    Args:
        path: path below `/article/v1/`.
        operation_id: name in the OpenAPI document.
        rpc: name of the RPC of the ArticleEditorService.
        summary: one line for people.
        body: wire type of the request.
        request: converts the body to the RPC's request; raises GatewayError.
        answer: wire type of the response's `data`.
        data: returns `data` for the body and the RPC's response.
    """
    example = EXAMPLES[path]
    return EndpointSpec(
        method="POST",
        path=PREFIX + path,
        handler=partial(_handle, _Call(rpc, body, request, data)),
        operation_id=operation_id,
        summary=summary,
        body=Body(body, example=example.body),
        answer=Answer("Success", [answer], examples={"": example.data}),
        schema_prefix="articles.",
    )


def edit_endpoint(
    path: str,
    operation_id: str,
    summary: str,
) -> EndpointSpec:
    """Return the spec of an endpoint that applies one of `EDITS`."""
    kind = EDITS[path]
    request = partial(requests.apply_edit, kind.edit)
    return rpc_endpoint(
        path, operation_id, "ApplyEdit", summary, kind.body, request, kind.answer, kind.data
    )


async def _handle(call: _Call, exchange: Exchange) -> Response:
    """Parse a request, call the service, return its response."""
    body, message = await receive(exchange, call.body, call.request)
    method = getattr(exchange.context.articles, call.rpc)
    response: Any = await method(message, metadata=rpc_metadata(exchange))
    is_long = isinstance(response, ReadArticleResponse) and len(response.blocks) > _MANY_BLOCKS
    rendered = await offload_if(is_long, _render, call, body, response)
    return JsonResponse(rendered)


async def receive(
    exchange: Exchange, body_type: type[BaseModel], request: Callable[[Any], Message]
) -> tuple[BaseModel, Message]:
    """Return the body of a request, and the message for the service.

    Raises:
        GatewayError: the body is invalid; a session that it names is kept alive.
    """
    _check_json(exchange)
    try:
        async with ReceivedBody(exchange, MAX_BODY, "") as held:
            limit = exchange.context.settings.limits.max_body_values
            is_large = len(held[0]) > _LARGE
            return await offload_if(is_large, _read, body_type, request, held, limit)
    except _RefusedFieldsError as refused:
        await _keep_session_alive(exchange, refused.session_id)
        raise refused.error from None


class _RefusedFieldsError(Exception):
    """An error of a field, in a body that may name a session."""

    def __init__(self, error: GatewayError, session_id: object) -> None:
        super().__init__()
        self.error = error
        self.session_id = session_id


def _read(
    body_type: type[BaseModel],
    request: Callable[[Any], Message],
    held: list[bytes],
    max_values: int,
) -> tuple[BaseModel, Message]:
    """Parse the body in a list, from which it is removed; return it, and the request to send."""
    if len(held[0]) > max_values:
        check_values(held[0], max_values)
    fields = articles.read_object(held.pop())
    try:
        body = articles.read(body_type, fields)
        return body, request(body)
    except GatewayError as error:
        raise _RefusedFieldsError(error, fields.get("sessionId")) from None


def _render(call: _Call, body: BaseModel, response: Message) -> bytes:
    data = call.data(body, response)
    if isinstance(response, ApplyEditResponse) and response.suggestion_id:
        data["suggestionId"] = response.suggestion_id
    return articles.render(data)


async def _keep_session_alive(exchange: Exchange, session_id: object) -> None:
    """Keep the session of a rejected request alive, as the service does.

    Raises:
        GatewayError: the session has ended or is not the caller's; this error replaces the original
            one.
    """
    if not isinstance(session_id, str):
        return
    keep_alive = KeepSessionAliveRequest(session_id=session_id)
    try:
        await exchange.context.articles.KeepSessionAlive(
            keep_alive, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None


def _check_json(exchange: Exchange) -> None:
    """Check that the content type of a request is JSON.

    Raises:
        GatewayError: 40001 for another content type.
    """
    # Parsing the value takes longer than the rest.
    if exchange.headers.get("content-type") != _JSON and exchange.content_type != _JSON:
        problem = f"must be {_JSON}, not {quoted(exchange.content_type)}"
        raise articles.request_error(Code.BODY, "Content-Type", problem)
