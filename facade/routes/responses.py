"""POST /beta/v1/responses."""

from collections.abc import Awaitable
from functools import partial

from facade.background_responses import BackgroundResponse
from facade.dialects import responses
from facade.dialects.parsed_request import ParsedRequest
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.parsing import RESPONSES
from facade.response_conversations import insert_previous_items
from facade.response_storage import ResponseStore, StoredStream
from facade.routes.generation import generate, parse, rpc_metadata, stream
from services.common.ids import new_response_id
from services.common.process.byte_budget import Charge, request_charge


async def create(exchange: Exchange) -> Response:
    """Generate a response, and store it unless the request has `store: false`."""
    parsed = await parse(exchange, RESPONSES)
    state = parsed.state
    assert state is not None
    if state.previous_response_id is None and state.conversation is None and not state.references:
        return await _generate(exchange, parsed, state, None)
    with exchange.charge() as charge:
        metadata = rpc_metadata(exchange)
        state = await insert_previous_items(exchange, parsed, state, metadata, charge)
        request_charge.set(charge)
        return await _generate(exchange, parsed, state, charge)


async def _generate(
    exchange: Exchange,
    parsed: ParsedRequest,
    state: responses.ResponseState,
    charge: Charge | None,
) -> Response:
    """Respond with a response to a request that is complete.

    Args:
        exchange: the request.
        parsed: its body.
        state: its storage options.
        charge: the bytes held for stored items that have been inserted.
    """
    if state.background:
        return await _generate_in_background(exchange, parsed, state, charge)
    response_id = new_response_id()
    if state.store or state.conversation is not None:
        return await _generate_stored(exchange, parsed, state, response_id)
    if parsed.stream:
        return await stream(exchange, parsed, _encoder(exchange, state, response_id))
    return await _whole(exchange, parsed, state, response_id)


async def _generate_in_background(
    exchange: Exchange,
    parsed: ParsedRequest,
    state: responses.ResponseState,
    charge: Charge | None,
) -> Response:
    """Respond with the queued response, or with the events of its generation."""
    metadata = rpc_metadata(exchange)
    exchange.release_body()  # the response reserves its own
    running = BackgroundResponse(exchange, parsed, state, metadata, new_response_id(), charge)
    queued = await running.begin()
    if parsed.stream:
        return await running.events.write_to(exchange)
    return JsonResponse(queued, {})


async def _generate_stored(
    exchange: Exchange, parsed: ParsedRequest, state: responses.ResponseState, response_id: str
) -> Response:
    """Respond with the response or its events, and store it before its end is sent."""
    store = ResponseStore(exchange.context, rpc_metadata(exchange), response_id, state)
    await store.check_capacity()
    if parsed.stream:
        encoder = _encoder(exchange, state, response_id)
        return await stream(exchange, parsed, encoder, StoredStream(store, encoder))
    response = await _whole(exchange, parsed, state, response_id)
    if isinstance(response, JsonResponse):
        await store.store(response.body)
    return response


def _encoder(
    exchange: Exchange, state: responses.ResponseState, response_id: str
) -> responses.ResponseStream:
    now = exchange.context.clock.now
    return responses.ResponseStream(response_id, int(now()), state.echo, now)


def _whole(
    exchange: Exchange, parsed: ParsedRequest, state: responses.ResponseState, response_id: str
) -> Awaitable[Response]:
    created, echo = int(exchange.context.clock.now()), state.echo
    return generate(
        exchange,
        parsed,
        partial(responses.render_response, response_id=response_id, created=created, echo=echo),
        partial(responses.passthrough_response, response_id=response_id, echo=echo),
    )


ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/beta/v1/responses",
        handler=create,
        is_plain=True,
        operation_id="createResponse",
        summary="Create a response",
        body=Body(responses.ResponseRequest),
        answer=Answer("The answer", is_streamed=True),
    ),
)
