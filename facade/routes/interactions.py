"""Google's interactions, under /v1beta: responses in Google's format."""

from collections.abc import Awaitable
from typing import Final, TypeVar

import grpc
from aiohttp import hdrs

from facade.dialects import interactions, stored_responses
from facade.dialects.interactions import schemas
from facade.endpoint import Answer, Body, EndpointSpec, query_parameter
from facade.failures import to_gateway_error
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.parsing import INTERACTIONS
from facade.routes import stored_responses as stored
from facade.routes.generation import rpc_metadata
from facade.routes.responses import ResponseForm, create_as
from gateway.memory.v1.responses_pb2 import ListInputItemsRequest
from services.common.errors import GatewayError

_T = TypeVar("_T")

_PAGE: Final = 100  # items of the input that are read at once
_ALL: Final = -1  # events are numbered from 0
_FORM: Final = ResponseForm(
    INTERACTIONS,
    encoder=interactions.InteractionStream,
    render=interactions.render_interaction,
    translator=lambda: interactions.InteractionEvents().translate,
)


async def create(exchange: Exchange) -> Response:
    """Generate an interaction, and store it unless the request has `store: false`."""
    return await _in_own_words(exchange, create_as(exchange, _FORM))


async def retrieve(exchange: Exchange) -> Response:
    """Return an interaction, or, once it has ended, its events after `last_event_id`."""
    return await _in_own_words(exchange, _retrieve(exchange))


async def delete(exchange: Exchange) -> Response:
    """Delete an interaction."""
    await _in_own_words(exchange, stored.delete_stored(exchange, _name(exchange)))
    return JsonResponse(b"{}")


async def cancel(exchange: Exchange) -> Response:
    """Cancel an interaction that is generated in the background."""
    response = await _in_own_words(exchange, stored.cancel_stored(exchange, _name(exchange)))
    return JsonResponse(interactions.render_interaction(response))


async def _retrieve(exchange: Exchange) -> Response:
    query = interactions.parse_interaction_query(exchange.query)
    name = _name(exchange)
    if query.stream and exchange.method != hdrs.METH_HEAD:
        return await stored.stream_ended(
            exchange,
            name,
            lambda ended, whole: interactions.replayed(
                stored_responses.replay(ended, whole, _ALL), query.last_event
            ),
        )
    with exchange.reading_response():
        response = stored_responses.render_stored(await stored.get_stored(exchange, name))
        sent = await _input_items(exchange, name) if query.with_input else None
        return JsonResponse(interactions.render_interaction(response, sent))


async def _input_items(exchange: Exchange, name: str) -> list[bytes]:
    """Return the items that a response was generated from, as JSON."""
    items: list[bytes] = []
    after, has_more = "", True
    while has_more:
        request = ListInputItemsRequest(id=name, page_size=_PAGE, after=after, ascending=True)
        metadata = rpc_metadata(exchange)
        page = await exchange.context.responses.ListInputItems(request, metadata=metadata)
        items += [item.json for item in page.items]
        has_more = page.has_more and bool(page.items)
        after = page.items[-1].id if page.items else ""
    return items


async def _in_own_words(exchange: Exchange, work: Awaitable[_T]) -> _T:
    """Return a result; errors about a response become those about an interaction."""
    try:
        return await work
    except (GatewayError, grpc.aio.AioRpcError) as error:
        raise interactions.interaction_error(to_gateway_error(error, exchange)) from None


def _name(exchange: Exchange) -> str:
    return exchange.path_values["interaction_id"]


_PATH = "/v1beta/interactions"
_ONE = f"{_PATH}/{{interaction_id}}"

ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path=_PATH,
        handler=create,
        operation_id="createInteraction",
        summary="Create an interaction",
        body=Body(
            interactions.InteractionBody, example={"model": "sandbox/echo", "input": "Hello"}
        ),
        answer=Answer("The answer", [schemas.INTERACTION], is_streamed=True),
    ),
    EndpointSpec(
        method="GET",
        path=_ONE,
        handler=retrieve,
        operation_id="getInteraction",
        summary="Get a stored interaction",
        parameters=[
            query_parameter(
                "stream",
                schemas.FLAG,
                "Whether to return its events; they are sent after it has finished.",
            ),
            query_parameter(
                "last_event_id",
                schemas.EVENT_ID,
                "Id of the last event to skip; allowed only if `stream` is true.",
            ),
            query_parameter(
                "include_input",
                schemas.FLAG,
                "Whether to return the steps that it was generated from.",
            ),
        ],
        answer=Answer("Success", [schemas.INTERACTION], is_streamed=True),
    ),
    EndpointSpec(
        method="DELETE",
        path=_ONE,
        handler=delete,
        operation_id="deleteInteraction",
        summary="Delete a stored interaction",
    ),
    EndpointSpec(
        method="POST",
        path=f"{_ONE}/cancel",
        handler=cancel,
        operation_id="cancelInteraction",
        summary="Cancel a background interaction",
        answer=Answer("Success", [schemas.INTERACTION]),
    ),
)
