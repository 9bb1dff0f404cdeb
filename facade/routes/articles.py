"""Routes of document editing: one handler for the table of endpoints."""

from functools import partial
from typing import Any, TypeVar

import grpc
from aiohttp import web
from google.protobuf.message import Message
from pydantic import BaseModel

from facade.bodies import ReceivedBody
from facade.context import CONTEXT
from facade.dialects import articles
from facade.dialects.articles import Code, Endpoint
from facade.middlewares import EXCHANGE
from facade.parsing import check_values
from facade.routes.generation import metadata
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


def routes() -> list[web.RouteDef]:
    """Return the routes of all endpoints."""
    return [
        web.post(articles.PREFIX + endpoint.path, partial(_handle, endpoint))
        for endpoint in articles.ENDPOINTS
    ]


async def _handle(endpoint: Endpoint, request: web.Request) -> web.Response:
    """Parse a request, call the service, return its response."""
    _check_json(request)
    async with ReceivedBody(request[EXCHANGE], MAX_BODY, "") as held:
        content = held.pop()
        is_large = len(content) > _LARGE
        limit = request.app[CONTEXT].settings.limits.max_body_values
        fields = await offload_if(is_large, _read_object, content, limit)
        del content
    try:
        body, message = await offload_if(is_large, _translate, endpoint, fields)
    except GatewayError:
        await _keep_session_alive(request, fields.get("sessionId"))
        raise
    call = getattr(request.app[CONTEXT].articles, endpoint.rpc)
    response: Any = await call(message, metadata=metadata(request))
    is_long = isinstance(response, ReadArticleResponse) and len(response.blocks) > _MANY_BLOCKS
    rendered = await offload_if(is_long, _render, endpoint, body, response)
    return web.Response(body=rendered, content_type="application/json")


def _read_object(content: bytes, max_values: int) -> dict[str, Any]:
    check_values(content, max_values)
    return articles.read_object(content)


def _translate(endpoint: Endpoint, fields: dict[str, Any]) -> tuple[BaseModel, Message]:
    body = articles.read(endpoint.body, fields)
    return body, endpoint.request(body)


def _render(endpoint: Endpoint, body: BaseModel, response: Message) -> bytes:
    return articles.render(endpoint.data(body, response))


async def _keep_session_alive(request: web.Request, session_id: object) -> None:
    """Keep the session of a rejected request alive, as the service does.

    Raises:
        GatewayError: the session has ended or is not the caller's; this error replaces the original
            one.
    """
    if not isinstance(session_id, str):
        return
    keep_alive = KeepSessionAliveRequest(session_id=session_id)
    try:
        await request.app[CONTEXT].articles.KeepSessionAlive(keep_alive, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None


def _check_json(request: web.Request) -> None:
    """Check that the content type of a request is JSON.

    Raises:
        GatewayError: 40001 for another content type.
    """
    if request.content_type != "application/json":
        problem = f"must be application/json, not {quoted(request.content_type)}"
        raise articles.request_error(Code.BODY, "Content-Type", problem)
