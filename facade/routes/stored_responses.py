"""The endpoints of stored responses: GET, DELETE, cancel, and the list of input items."""

from collections.abc import Callable
from functools import partial

import grpc
from aiohttp import hdrs

from facade.dialects import stored_responses
from facade.dialects.json_schemas import NAME
from facade.dialects.stored_responses import schemas
from facade.endpoint import Answer, EndpointSpec, query_parameter
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response, StreamedResponse
from facade.routes.generation import rpc_metadata
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


async def retrieve(exchange: Exchange) -> Response:
    """Return a response, or, once it has ended, its events after `starting_after`."""
    query = stored_responses.parse_retrieve_query(exchange.query)
    if not query.stream or exchange.method == hdrs.METH_HEAD:
        with exchange.reading_response():
            stored = await get_stored(exchange, _name(exchange))
        return JsonResponse(stored_responses.render_stored(stored))
    replay = partial(stored_responses.replay, starting_after=query.starting_after)
    return await stream_ended(exchange, _name(exchange), replay)


async def delete(exchange: Exchange) -> Response:
    """Delete a response."""
    name = _name(exchange)
    await delete_stored(exchange, name)
    return JsonResponse(stored_responses.render_deleted(name))


async def delete_stored(exchange: Exchange, name: str) -> None:
    """Delete the response with an id.

    Raises:
        GatewayError: not_found, there is none.
    """
    rpc_request = DeleteResponseRequest(id=name)
    try:
        await exchange.context.responses.DeleteResponse(
            rpc_request, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise stored_responses.stored_error(from_rpc_error(error), name) from None


async def cancel(exchange: Exchange) -> Response:
    """Cancel a response that is generated in the background."""
    return JsonResponse(await cancel_stored(exchange, _name(exchange)))


async def cancel_stored(exchange: Exchange, name: str) -> bytes:
    """Cancel the response with an id; return its response object.

    Raises:
        GatewayError: not_found, there is none; invalid, it was not in the background.
    """
    rpc_request = CancelResponseRequest(id=name)
    service = exchange.context.responses
    try:
        answer = await service.CancelResponse(rpc_request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise stored_responses.cancel_error(from_rpc_error(error), name) from None
    return stored_responses.render_stored(answer.response)


async def list_input_items(exchange: Exchange) -> Response:
    """List the input items of a response."""
    name = _name(exchange)
    page = stored_responses.parse_items_query(exchange.query)
    rpc_request = ListInputItemsRequest(
        id=name, page_size=page.limit, after=page.after, ascending=page.ascending
    )
    service = exchange.context.responses
    try:
        with exchange.reading_response():
            listed = await service.ListInputItems(rpc_request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise stored_responses.stored_error(from_rpc_error(error), name) from None
    return JsonResponse(stored_responses.render_items(listed.items, has_more=listed.has_more))


async def get_stored(
    exchange: Exchange, name: str, *, wait_ms: int = 0, with_events: bool = False
) -> StoredResponse:
    """Return the response with an id; with `wait_ms`, once it has ended or the time is over.

    Raises:
        GatewayError: not_found, there is none.
    """
    rpc_request = GetResponseRequest(id=name, wait_ms=wait_ms, with_events=with_events)
    service = exchange.context.responses
    try:
        answer = await service.GetResponse(rpc_request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise stored_responses.stored_error(from_rpc_error(error), name) from None
    return answer.response


async def stream_ended(
    exchange: Exchange, name: str, replay: Callable[[StoredResponse, bytes], bytes]
) -> Response:
    """Respond with the events of the response with an id, once it has ended.

    Args:
        exchange: the request.
        name: the id.
        replay: returns the events of a response with its response object.
    """
    with exchange.reading_response():
        stored = await get_stored(exchange, name, with_events=True)
        response = StreamedResponse(exchange, {})
        keepalive_ms = int(exchange.context.settings.limits.keepalive_s * 1000)
        while stored.state in _RUNNING:
            response.write(_KEEPALIVE)
            stored = await get_stored(exchange, name, wait_ms=keepalive_ms, with_events=True)
    whole = stored_responses.render_stored(stored)
    response.write(replay(stored, whole), is_last=True)
    if exchange.connection.writing_paused:
        await exchange.connection.drain()
    return response


def _name(exchange: Exchange) -> str:
    return exchange.path_values["response_id"]


_PATH = "/beta/v1/responses/{response_id}"
_STREAM = query_parameter(
    "stream",
    schemas.STREAM,
    "Whether to return the response's events; they are sent after the response has finished.",
)
_STARTING_AFTER = query_parameter(
    "starting_after",
    schemas.STARTING_AFTER,
    "Sequence number of the last event to skip; allowed only if `stream` is true.",
)
INCLUDE = query_parameter("include[]", schemas.INCLUDE, "Ignored: all stored data is returned.")
ITEM_PAGE = (
    INCLUDE,
    query_parameter("limit", schemas.LIMIT),
    query_parameter("order", schemas.ORDER),
    query_parameter("after", NAME, "Id of the last item of the previous page."),
)

ENDPOINTS = (
    EndpointSpec(
        method="GET",
        path=_PATH,
        handler=retrieve,
        operation_id="getResponse",
        summary="Get a stored response",
        parameters=[INCLUDE, _STREAM, _STARTING_AFTER],
        answer=Answer("Success", [schemas.RESPONSE], is_streamed=True),
    ),
    EndpointSpec(
        method="DELETE",
        path=_PATH,
        handler=delete,
        operation_id="deleteResponse",
        summary="Delete a stored response",
        answer=Answer("Success", [schemas.DELETED]),
    ),
    EndpointSpec(
        method="POST",
        path=f"{_PATH}/cancel",
        handler=cancel,
        operation_id="cancelResponse",
        summary="Cancel a background response",
        answer=Answer("Success", [schemas.RESPONSE]),
    ),
    EndpointSpec(
        method="GET",
        path=f"{_PATH}/input_items",
        handler=list_input_items,
        operation_id="listInputItems",
        summary="List the input items of a response",
        parameters=ITEM_PAGE,
        answer=Answer("Success", [schemas.ITEMS]),
    ),
)
