"""The endpoints of stored responses: GET, DELETE, cancel, and the list of input items."""

import grpc
from aiohttp import web

from facade.context import CONTEXT
from facade.dialects import stored_responses
from facade.http.exchange import Exchange
from facade.http.responses import Response, StreamedResponse
from facade.middlewares import EXCHANGE, to_web_response
from facade.routes.generation import metadata
from gateway.memory.v1.responses_pb2 import (
    CancelResponseRequest,
    DeleteResponseRequest,
    GetResponseRequest,
    ListInputItemsRequest,
    StoredResponse,
)
from services.common.errors import from_rpc_error

_RUNNING = (StoredResponse.STATE_QUEUED, StoredResponse.STATE_IN_PROGRESS)
_KEEPALIVE = b": keep-alive\n\n"


def routes() -> list[web.RouteDef]:
    """Return the routes of all endpoints."""
    one = "/beta/v1/responses/{response_id}"
    return [
        web.get(one, retrieve),
        web.delete(one, delete),
        web.post(f"{one}/cancel", cancel),
        web.get(f"{one}/input_items", list_input_items),
    ]


async def retrieve(request: web.Request) -> web.StreamResponse:
    """Return a response, or, once it has ended, its events after `starting_after`."""
    query = stored_responses.parse_retrieve_query(request.query)
    exchange = request[EXCHANGE]
    if not query.stream:
        with exchange.reading_response():
            stored = await _get(request)
        return _json(stored_responses.render_stored(stored))
    return to_web_response(exchange, await _stream(request, exchange, query.starting_after))


async def delete(request: web.Request) -> web.Response:
    """Delete a response."""
    name = _name(request)
    rpc_request = DeleteResponseRequest(id=name)
    try:
        await request.app[CONTEXT].responses.DeleteResponse(rpc_request, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise stored_responses.stored_error(from_rpc_error(error), name) from None
    return _json(stored_responses.render_deleted(name))


async def cancel(request: web.Request) -> web.Response:
    """Cancel a response that is generated in the background."""
    name = _name(request)
    rpc_request = CancelResponseRequest(id=name)
    service = request.app[CONTEXT].responses
    try:
        answer = await service.CancelResponse(rpc_request, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise stored_responses.cancel_error(from_rpc_error(error), name) from None
    return _json(stored_responses.render_stored(answer.response))


async def list_input_items(request: web.Request) -> web.Response:
    """List the input items of a response."""
    name = _name(request)
    page = stored_responses.parse_items_query(request.query)
    rpc_request = ListInputItemsRequest(
        id=name, page_size=page.limit, after=page.after, ascending=page.ascending
    )
    service = request.app[CONTEXT].responses
    try:
        with request[EXCHANGE].reading_response():
            listed = await service.ListInputItems(rpc_request, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise stored_responses.stored_error(from_rpc_error(error), name) from None
    return _json(stored_responses.render_items(listed.items, has_more=listed.has_more))


async def _get(
    request: web.Request, *, wait_ms: int = 0, with_events: bool = False
) -> StoredResponse:
    name = _name(request)
    rpc_request = GetResponseRequest(id=name, wait_ms=wait_ms, with_events=with_events)
    service = request.app[CONTEXT].responses
    try:
        answer = await service.GetResponse(rpc_request, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise stored_responses.stored_error(from_rpc_error(error), name) from None
    return answer.response


async def _stream(request: web.Request, exchange: Exchange, starting_after: int) -> Response:
    """Respond with the events of a response, once it has ended."""
    with exchange.reading_response():
        stored = await _get(request, with_events=True)
        response = StreamedResponse(exchange, {})
        keepalive_ms = int(exchange.context.settings.limits.keepalive_s * 1000)
        while stored.state in _RUNNING:
            response.write(_KEEPALIVE)
            stored = await _get(request, wait_ms=keepalive_ms, with_events=True)
    whole = stored_responses.render_stored(stored)
    response.write_eof(stored_responses.replay(stored, whole, starting_after))
    if exchange.connection.writing_paused:
        await exchange.connection.drain()
    return response


def _name(request: web.Request) -> str:
    return request.match_info["response_id"]


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")
