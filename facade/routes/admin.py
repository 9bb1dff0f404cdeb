"""Routes of administration: one handler for the table of endpoints."""

from functools import partial
from typing import Any

import grpc
import orjson

from facade.bodies import ReceivedBody
from facade.dialects import admin
from facade.dialects.admin import Endpoint
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.http.router import Route
from facade.routes.generation import check_json, rpc_metadata
from services.common.errors import from_rpc_error

# Maximum size of a body: lists of models are the largest.
_MAX_BODY = 256 << 10


def routes() -> list[Route]:
    """Return the routes of all endpoints."""
    return [
        Route(endpoint.method, admin.PREFIX + endpoint.path, partial(_handle, endpoint))
        for endpoint in admin.ENDPOINTS
    ]


async def _handle(endpoint: Endpoint, exchange: Exchange) -> Response:
    """Parse a request, call the service, return its response."""
    body = b""
    if endpoint.body is not None:
        async with ReceivedBody(exchange, _MAX_BODY, "") as held:
            body = held.pop()
        if body or not endpoint.body_may_be_empty:
            check_json(exchange)
    message = admin.parse(endpoint, exchange.path_values, [*exchange.query.items()], body)
    call = getattr(getattr(exchange.context, endpoint.stub), endpoint.rpc)
    try:
        response: Any = await call(message, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise admin.to_caller_error(from_rpc_error(error)) from None
    return JsonResponse(orjson.dumps(endpoint.render(response)))
