"""POST /beta/v1/responses."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

from facade.dialects import responses, stored_responses
from facade.dialects.parsed_request import ParsedRequest
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response, StreamedResponse
from facade.parsing import RESPONSES, BodyFormat
from facade.response_conversations import complete, insert_previous_items
from facade.response_storage import ResponseKeeper, ResponseStore, StoredStream
from facade.routes.generation import generate, parse, rpc_metadata, stream
from facade.socket_exchange import SocketExchange
from facade.sse import Encoder, EndObserver
from gateway.conversation.v1.conversation_pb2 import FINISH_REASON_END_TURN
from gateway.inference.v1.inference_pb2 import Event, Finish, GetModelRequest, Start
from gateway.memory.v1.responses_pb2 import CreateBackgroundResponse, RunInBackgroundRequest
from services.common.errors import from_rpc_error
from services.common.ids import new_response_id
from services.common.process.byte_budget import Charge, request_charge
from services.common.process.offload import offload_if

# Requests of more bytes are written for the service in a thread.
_LARGE = 1 << 20
_KEEPALIVE = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True)
class ResponseForm:
    """The form in which a response is requested and returned.

    Attributes:
        body_format: the format of the request.
        encoder: returns the encoder of a stream, for that of the response's own events.
        render: returns the body to send for a response object.
        translator: returns a function that translates the response's own events as they arrive.
    """

    body_format: BodyFormat
    encoder: Callable[[responses.ResponseStream], Encoder]
    render: Callable[[bytes], bytes]
    translator: Callable[[], Callable[[bytes], bytes]]


_OWN = ResponseForm(
    RESPONSES, encoder=lambda stream: stream, render=bytes, translator=lambda: bytes
)


async def create(exchange: Exchange) -> Response:
    """Generate a response, and store it unless the request has `store: false`."""
    return await create_as(exchange, _OWN)


async def create_as(exchange: Exchange, form: ResponseForm) -> Response:
    """Generate a response, and store it unless the request has `store: false`."""
    keeps_items = {"keeps_items": True} if isinstance(exchange, SocketExchange) else {}
    parsed = await parse(exchange, form.body_format, **keeps_items)
    state = parsed.state
    assert state is not None
    if not state.uses_stored_items:
        return await _generate(exchange, form, parsed, state, None)
    with exchange.charge() as charge:
        metadata = rpc_metadata(exchange)
        state = await insert_previous_items(exchange, parsed, state, metadata, charge)
        request_charge.set(charge)
        return await _generate(exchange, form, parsed, state, charge)


async def _generate(
    exchange: Exchange,
    form: ResponseForm,
    parsed: ParsedRequest,
    state: responses.ResponseState,
    charge: Charge | None,
) -> Response:
    """Respond with a response to a request that is complete.

    Args:
        exchange: the request.
        form: the form of the response.
        parsed: its body.
        state: its storage options.
        charge: the bytes held for stored items that have been inserted.
    """
    if state.background:
        return await _generate_in_background(exchange, form, parsed, state, charge)
    response_id = new_response_id()
    if isinstance(exchange, SocketExchange) and not exchange.generates:
        return await _keep(exchange, parsed, state, response_id)
    if parsed.stream:
        return await _stream(exchange, form, parsed, state, response_id)
    store = await _store_of(exchange, state, response_id)
    response = await _whole(exchange, parsed, state, response_id)
    if store is not None:
        await store.store(response.body)
    response.body = form.render(response.body)
    return response


async def _generate_in_background(
    exchange: Exchange,
    form: ResponseForm,
    parsed: ParsedRequest,
    state: responses.ResponseState,
    charge: Charge | None,
) -> Response:
    """Respond with the queued response, or with the events of its generation."""
    is_large = parsed.request.ByteSize() > _LARGE
    create, generate = await offload_if(is_large, _background_steps, exchange, parsed, state)
    parsed.request = None  # it may be large
    # The service reserves what it holds.
    exchange.release_body()
    if charge is not None:
        charge.release()
    call: Any = exchange.context.responses.RunInBackground(metadata=rpc_metadata(exchange))
    try:
        # Writing to a call that has ended fails without its error, which reading raises.
        with suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
            await call.write(create)
            await call.write(generate)
        del create, generate
        queued = (await call.read()).queued
        if parsed.stream:
            return await _write_events(exchange, call, form.translator())
        return JsonResponse(form.render(queued), {})
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    finally:
        call.cancel()


def _background_steps(
    exchange: Exchange, parsed: ParsedRequest, state: responses.ResponseState
) -> tuple[RunInBackgroundRequest, RunInBackgroundRequest]:
    """Return the two messages for a response that is generated in the background."""
    assert exchange.caller_paths is not None, "the body has been parsed"
    new = stored_responses.new_response(
        new_response_id(), state.previous_response_id, state.input_items, None, state.conversation
    )
    created = int(exchange.context.clock.now())
    create = CreateBackgroundResponse(
        response=new,
        presentation=stored_responses.presentation(
            parsed.model, created, state.echo, exchange.caller_paths
        ),
        stream=parsed.stream,
    )
    generate = complete(parsed.request)
    return RunInBackgroundRequest(create=create), RunInBackgroundRequest(generate=generate)


async def _write_events(
    exchange: Exchange, call: Any, translate: Callable[[bytes], bytes]
) -> Response:
    """Respond with the events of a background response, and keepalives between them."""
    response = StreamedResponse(exchange, {})
    keepalive_s = exchange.context.settings.limits.keepalive_s
    while True:
        reading = asyncio.ensure_future(call.read())
        while not (await asyncio.wait({reading}, timeout=keepalive_s))[0]:
            response.write(_KEEPALIVE)
        if (message := reading.result()) is grpc.aio.EOF:
            response.write(is_last=True)
            return response
        response.write(translate(message.events))
        if exchange.connection.writing_paused:
            await exchange.connection.drain()


async def _stream(
    exchange: Exchange,
    form: ResponseForm,
    parsed: ParsedRequest,
    state: responses.ResponseState,
    response_id: str,
) -> Response:
    """Respond with the events of a response, which is stored before its end is sent."""
    store = await _store_of(exchange, state, response_id)
    own = _encoder(exchange, state, response_id)
    observer: EndObserver | None = None
    if store is not None:
        observer = StoredStream(store, own)
    elif isinstance(exchange, SocketExchange):
        observer = ResponseKeeper(exchange, state.input_items, own)
    return await stream(exchange, parsed, form.encoder(own), observer)


async def _store_of(
    exchange: Exchange, state: responses.ResponseState, response_id: str
) -> ResponseStore | None:
    """Return what stores a response, once there is room for it; None if it is not stored."""
    if not (state.store or state.conversation is not None):
        return None
    store = ResponseStore(exchange.context, rpc_metadata(exchange), response_id, state)
    await store.check_capacity()
    return store


async def _keep(
    exchange: SocketExchange,
    parsed: ParsedRequest,
    state: responses.ResponseState,
    response_id: str,
) -> Response:
    """Keep a conversation on its socket, and respond with a response without output.

    Raises:
        grpc.aio.AioRpcError: the model is not known.
    """
    metadata = rpc_metadata(exchange)
    await exchange.context.inference.GetModel(GetModelRequest(name=parsed.model), metadata=metadata)
    encoder = _encoder(exchange, state, response_id)
    events = encoder.encode(
        (
            Event(start=Start(model=parsed.model)),
            Event(finish=Finish(reason=FINISH_REASON_END_TURN)),
        )
    )
    end = encoder.finish()
    await ResponseKeeper(exchange, state.input_items, encoder).before_end()
    response = StreamedResponse(exchange, {})
    response.write(events, end, is_last=True)
    return response


def _encoder(
    exchange: Exchange, state: responses.ResponseState, response_id: str
) -> responses.ResponseStream:
    now = exchange.context.clock.now
    return responses.ResponseStream(response_id, int(now()), state.echo, now)


def _whole(
    exchange: Exchange, parsed: ParsedRequest, state: responses.ResponseState, response_id: str
) -> Awaitable[JsonResponse]:
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
        body=Body(responses.ResponseRequest, example={"model": "sandbox/echo", "input": "Hello"}),
        answer=Answer("The answer", is_streamed=True),
    ),
)
