"""Routes of document editing: one handler for the table of endpoints."""

from functools import partial
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from pydantic import BaseModel

from facade.bodies import ReceivedBody
from facade.dialects import articles
from facade.dialects.articles import Code, Endpoint
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.http.router import Route
from facade.parsing import check_values
from facade.routes.generation import rpc_metadata
from gateway.articles.v1.articles_pb2 import KeepSessionAliveRequest, ReadArticleResponse
from services.common.errors import GatewayError, from_rpc_error
from services.common.offload import offload_if
from services.common.texts import quoted

MAX_BODY = 2 << 20

# Bodies of at least this size are parsed in a thread.
_LARGE = 128 << 10
# Documents of at least this many blocks are rendered in a thread: 10,000 take 20 ms.
_MANY_BLOCKS = 500

_T = TypeVar("_T")


def routes() -> list[Route]:
    """Return the routes of all endpoints."""
    return [
        Route.post(articles.PREFIX + endpoint.path, partial(_handle, endpoint))
        for endpoint in articles.ENDPOINTS
    ]


async def _handle(endpoint: Endpoint, exchange: Exchange) -> Response:
    """Parse a request, call the service, return its response."""
    _check_json(exchange)
    async with ReceivedBody(exchange, MAX_BODY, "") as held:
        content = held.pop()
        is_large = len(content) > _LARGE
        limit = exchange.context.settings.limits.max_body_values
        fields = await offload_if(is_large, _read_object, content, limit)
        del content
    try:
        body, message = await offload_if(is_large, _translate, endpoint, fields)
    except GatewayError:
        await _keep_session_alive(exchange, fields.get("sessionId"))
        raise
    call = getattr(exchange.context.articles, endpoint.rpc)
    response: Any = await call(message, metadata=rpc_metadata(exchange))
    is_long = isinstance(response, ReadArticleResponse) and len(response.blocks) > _MANY_BLOCKS
    rendered = await offload_if(is_long, _render, endpoint, body, response)
    return JsonResponse(rendered)


def _read_object(content: bytes, max_values: int) -> dict[str, Any]:
    check_values(content, max_values)
    return articles.read_object(content)


def _translate(endpoint: Endpoint, fields: dict[str, Any]) -> tuple[BaseModel, Message]:
    body = articles.read(endpoint.body, fields)
    return body, endpoint.request(body)


def _render(endpoint: Endpoint, body: BaseModel, response: Message) -> bytes:
    return articles.render(endpoint.data(body, response))


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
    if exchange.content_type != "application/json":
        problem = f"must be application/json, not {quoted(exchange.content_type)}"
        raise articles.request_error(Code.BODY, "Content-Type", problem)
