"""Routes of administration: one handler for the table of endpoints."""

from functools import partial
from typing import Any

import grpc
import orjson
from aiohttp import web

from facade.bodies import ReceivedBody
from facade.context import CONTEXT
from facade.dialects import admin
from facade.dialects.admin import Endpoint
from facade.middlewares import EXCHANGE
from facade.routes.generation import check_json, metadata
from services.common.errors import from_rpc_error

# Maximum size of a body: lists of models are the largest.
_MAX_BODY = 256 << 10


def routes() -> list[web.RouteDef]:
    """Return the routes of all endpoints."""
    return [
        web.route(endpoint.method, admin.PREFIX + endpoint.path, partial(_handle, endpoint))
        for endpoint in admin.ENDPOINTS
    ]


async def _handle(endpoint: Endpoint, request: web.Request) -> web.Response:
    """Parse a request, call the service, return its response."""
    exchange = request[EXCHANGE]
    body = b""
    if endpoint.body is not None:
        async with ReceivedBody(exchange, _MAX_BODY, "") as held:
            body = held.pop()
        if body or not endpoint.body_may_be_empty:
            check_json(exchange)
    message = admin.parse(endpoint, request.match_info, [*request.query.items()], body)
    call = getattr(getattr(request.app[CONTEXT], endpoint.stub), endpoint.rpc)
    try:
        response: Any = await call(message, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise admin.to_caller_error(from_rpc_error(error)) from None
    return web.Response(
        body=orjson.dumps(endpoint.render(response)), content_type="application/json"
    )
