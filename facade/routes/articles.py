"""The document editing endpoints: all alike, each as its row of the table says."""

from functools import partial
from typing import Any

import grpc
from aiohttp import web

from facade.context import CONTEXT
from facade.dialects import articles
from facade.dialects.articles import Code, Endpoint
from facade.routes.generation import metadata
from gateway.articles.v1.articles_pb2 import ReadBlockRequest
from services.common.errors import GatewayError, from_rpc_error
from services.common.texts import quoted

MAX_BODY = 2 << 20

_NO_BLOCK = 40403


def routes() -> list[web.RouteDef]:
    """Give the routes of all endpoints."""
    return [
        web.post(articles.PREFIX + endpoint.path, partial(_answer, endpoint))
        for endpoint in articles.ENDPOINTS
    ]


async def _answer(endpoint: Endpoint, request: web.Request) -> web.Response:
    """Read, translate, call, translate back."""
    found = articles.read_object(await _read(request))
    try:
        body = articles.read(endpoint.body, found)
        wanted = endpoint.request(body)
    except GatewayError:
        await _keep_session(request, found.get("sessionId"))
        raise
    call = getattr(request.app[CONTEXT].articles, endpoint.rpc)
    response: Any = await call(wanted, metadata=metadata(request))
    data = endpoint.data(body, response)
    return web.Response(body=articles.render(data), content_type="application/json")


async def _keep_session(request: web.Request, session_id: object) -> None:
    """Keep the session alive that a refused request names, as the service does with its own.

    Raises:
        GatewayError: the session is over, or was never the caller's, which is told first.
    """
    if not isinstance(session_id, str):
        return
    # No block has an empty id; what counts is that the call names the session.
    nothing = ReadBlockRequest(session_id=session_id)
    try:
        await request.app[CONTEXT].articles.ReadBlock(nothing, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        if failure.article_code != _NO_BLOCK:
            raise failure from None


async def _read(request: web.Request) -> bytes:
    """Give the body of a request that says it is JSON.

    Raises:
        GatewayError: 40001 for another content type or broken framing, 41301.
    """
    if request.content_type != "application/json":
        said = f"is {quoted(request.content_type)}, and takes application/json"
        raise articles.refused(Code.BODY, "Content-Type", said)
    try:
        return await request.clone(client_max_size=MAX_BODY).read()
    except web.HTTPRequestEntityTooLarge:
        raise articles.too_large(MAX_BODY) from None
    except web.RequestPayloadError:
        raise articles.refused(Code.BODY, "", "ends before its HTTP framing says") from None
