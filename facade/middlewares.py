"""Middlewares for requests that aiohttp parses, and its responses."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

from aiohttp import HttpVersion11, hdrs, web

from facade.admin_authentication import PREFIX as ADMIN_PREFIX
from facade.admin_authentication import authenticate_administrator
from facade.aliases import route_of
from facade.context import CONTEXT
from facade.http.exchange import ClientConnection, Exchange
from facade.http.heads import EXPECT, check_head
from facade.http.paths import is_encoded
from facade.http.raw_response import RawResponse
from facade.http.responses import JsonResponse, StreamedResponse
from facade.http_errors import encoded_path
from facade.public_paths import is_public
from facade.request_context import authenticate, request_context

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Endpoint = Callable[[Exchange], Awaitable[JsonResponse | StreamedResponse]]

# The exchange of a request.
EXCHANGE = web.RequestKey("exchange", Exchange)


@web.middleware
async def in_request_context(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Handle a request in its context."""
    request[EXCHANGE] = exchange = _exchange_of(request)

    async def serve(_: Exchange) -> web.StreamResponse:
        if is_encoded(request):
            raise encoded_path(request.method, request.rel_url.raw_path)
        return await handler(request)

    response = await request_context(exchange, serve)
    if isinstance(response, JsonResponse):
        return to_web_response(exchange, response)
    if not exchange.keep_alive:
        response.force_close()
    return response


@web.middleware
async def answer_preflights(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a CORS preflight (the Fetch standard, section 3.3).

    A preflight carries no key and is answered for any path, so that the page can read the response
    to the request itself, even a 404.
    """
    cors = request[EXCHANGE].context.cors
    request_headers = request.headers
    if (
        cors is not None
        and request.method == hdrs.METH_OPTIONS
        and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request_headers
    ):
        names = request_headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")
        headers = cors.preflight(request_headers.get(hdrs.ORIGIN, ""), names)
        if headers is not None:
            return web.Response(status=204, headers=headers)
    return await handler(request)


@web.middleware
async def authenticated(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reject a request without a valid API key, or admin key, unless its path needs none."""
    exchange = request[EXCHANGE]
    check_head(request)
    problem = request.match_info.http_exception
    if request.path.startswith(ADMIN_PREFIX):
        # Also before a 405 response, which lists the methods of a path.
        if not isinstance(problem, web.HTTPNotFound):
            await authenticate_administrator(exchange)
    elif problem is None and not is_public(request.path):
        await authenticate(exchange)
    return await handler(request)


async def name_response(request: web.Request, response: web.StreamResponse) -> None:
    """Add the request id to the response, in the headers that both kinds of clients read.

    The `Server` header is removed. A response before the end of its request closes the connection.
    """
    exchange = request[EXCHANGE]
    exchange.has_begun = True
    headers = response.headers
    headers["x-request-id"] = headers["request-id"] = exchange.request_id
    headers.popall(hdrs.SERVER, None)
    headers.update(exchange.cors_headers)
    if not exchange.is_received:
        response.force_close()
        headers[hdrs.CONNECTION] = "close"


def as_handler(endpoint: Endpoint) -> Handler:
    """Return an aiohttp handler for an endpoint."""

    async def handler(request: web.Request) -> web.StreamResponse:
        exchange = request[EXCHANGE]
        return to_web_response(exchange, await endpoint(exchange))

    return handler


def to_web_response(
    exchange: Exchange, response: JsonResponse | StreamedResponse
) -> web.StreamResponse:
    """Return a response for aiohttp; a streamed response is not written again."""
    if isinstance(response, StreamedResponse):
        return RawResponse(response.status, bytes, exchange)
    return RawResponse(response.status, partial(response.encode, exchange), exchange)


def _exchange_of(request: web.Request) -> Exchange:
    resource = request.match_info.route.resource
    return Exchange(
        request.app[CONTEXT],
        cast(ClientConnection, request.protocol),
        request.method,
        request.path,
        "unknown" if resource is None or is_encoded(request) else route_of(resource.canonical),
        request.headers,
        None,
        request.content,
        is_http_1_1=request.version >= HttpVersion11,
        keep_alive=request.keep_alive,
        expect=request.get(EXPECT),
    )
