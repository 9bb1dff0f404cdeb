"""The endpoints of batches of messages, in Anthropic's format."""

from typing import Any

import grpc

from facade.bodies import ReceivedBody
from facade.dialects.anthropic import batch_schemas as schemas
from facade.dialects.anthropic import batches
from facade.dialects.json_schemas import NAME
from facade.endpoint import Answer, Body, EndpointSpec, query_parameter
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response, StreamedResponse
from facade.request_address import address_of
from facade.routes.generation import check_json, rpc_metadata
from gateway.batches.v1.batches_pb2 import (
    CancelBatchRequest,
    CreateBatchRequest,
    DeleteBatchRequest,
    GetBatchRequest,
    StreamResultsRequest,
)
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from services.common.errors import GatewayError, from_rpc_error
from services.common.grpc.dialect_headers import of_request
from services.common.process.offload import offload_if

# Bodies of more bytes are parsed in a thread.
_LARGE = 128 << 10
_LINES = "application/x-jsonl"
# Headers that belong to the requests of a batch, beside those that are forwarded to providers.
_KEPT_HEADERS = ("anthropic-version", "anthropic-beta")


async def create(exchange: Exchange) -> Response:
    """Create a batch of requests for messages."""
    request = await _parsed(exchange)
    headers = of_request(DIALECT_ANTHROPIC, exchange.headers)
    for name in _KEPT_HEADERS:
        if value := exchange.joined_header(name):
            headers[name] = value
    request.headers.update(headers)
    call = exchange.context.batches.CreateBatch(request, metadata=rpc_metadata(exchange))
    del request  # it may be large
    try:
        created = await call
    except grpc.aio.AioRpcError as error:
        raise batches.create_error(from_rpc_error(error)) from None
    return JsonResponse(batches.render_batch(created.batch, address_of(exchange)))


async def retrieve(exchange: Exchange) -> Response:
    """Return a batch."""
    request = GetBatchRequest(id=_name(exchange), dialect=DIALECT_ANTHROPIC)
    try:
        answer = await exchange.context.batches.GetBatch(request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    return JsonResponse(batches.render_batch(answer.batch, address_of(exchange)))


async def list_batches(exchange: Exchange) -> Response:
    """Return a page of the caller's batches."""
    request = batches.parse_batch_list(exchange.query)
    try:
        page = await exchange.context.batches.ListBatches(request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    return JsonResponse(batches.render_batch_list(page, address_of(exchange)))


async def cancel(exchange: Exchange) -> Response:
    """Cancel a batch."""
    request = CancelBatchRequest(id=_name(exchange), dialect=DIALECT_ANTHROPIC)
    try:
        answer = await exchange.context.batches.CancelBatch(
            request, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    return JsonResponse(batches.render_batch(answer.batch, address_of(exchange)))


async def delete(exchange: Exchange) -> Response:
    """Delete a batch that has ended."""
    request = DeleteBatchRequest(id=_name(exchange), dialect=DIALECT_ANTHROPIC)
    try:
        await exchange.context.batches.DeleteBatch(request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    return JsonResponse(batches.render_deleted_batch(_name(exchange)))


async def results(exchange: Exchange) -> Response:
    """Return the results of a batch that has ended, a line each."""
    request = StreamResultsRequest(id=_name(exchange), dialect=DIALECT_ANTHROPIC)
    call: Any = exchange.context.batches.StreamResults(request, metadata=rpc_metadata(exchange))
    response: StreamedResponse | None = None
    try:
        async for page in call:
            if response is None:
                response = StreamedResponse(exchange, {}, _LINES)
            response.write(*map(batches.render_result, page.results))
            if exchange.connection.writing_paused:
                await exchange.connection.drain()
    except grpc.aio.AioRpcError as error:
        if response is not None:
            # Only a response that is cut off says that results are missing.
            raise ConnectionResetError("the results could not be read") from None
        raise _error(error, exchange) from None
    finally:
        call.cancel()
    response = response or StreamedResponse(exchange, {}, _LINES)
    response.write(is_last=True)
    return response


async def _parsed(exchange: Exchange) -> CreateBatchRequest:
    """Read and parse the body of a new batch.

    Raises:
        GatewayError: 415 for another content type; too_large; invalid, naming the field.
    """
    check_json(exchange)
    max_body_bytes = exchange.context.settings.limits.max_body_bytes
    body = exchange.take_body(max_body_bytes)
    if body is not None:
        held = [body]
        del body
        return await offload_if(len(held[0]) > _LARGE, batches.parse_batch, held)
    async with ReceivedBody(exchange, max_body_bytes) as held:
        return await offload_if(len(held[0]) > _LARGE, batches.parse_batch, held)


def _error(error: grpc.aio.AioRpcError, exchange: Exchange) -> GatewayError:
    return batches.batch_error(from_rpc_error(error), _name(exchange))


def _name(exchange: Exchange) -> str:
    return exchange.path_values["batch_id"]


_PATH = "/beta/v1/messages/batches"
_ONE = f"{_PATH}/{{batch_id}}"
_EXAMPLE = {
    "requests": [
        {
            "custom_id": "first",
            "params": {
                "model": "sandbox/echo",
                "max_tokens": 100,
                "messages": [{"role": "user", "content": "Hello"}],
            },
        }
    ]
}

ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path=_PATH,
        handler=create,
        operation_id="createMessageBatch",
        summary="Create a batch of requests for messages",
        body=Body(batches.MessageBatchBody, example=_EXAMPLE),
        answer=Answer("The batch", [schemas.BATCH]),
    ),
    EndpointSpec(
        method="GET",
        path=_PATH,
        handler=list_batches,
        operation_id="listMessageBatches",
        summary="List batches of messages, the newest first",
        parameters=[
            query_parameter("limit", schemas.LIMIT),
            query_parameter("after_id", NAME, "Id of the last batch of the previous page."),
            query_parameter("before_id", NAME, "Id of the first batch of the next page."),
        ],
        answer=Answer("Success", [schemas.BATCHES]),
    ),
    EndpointSpec(
        method="GET",
        path=_ONE,
        handler=retrieve,
        operation_id="getMessageBatch",
        summary="Get a batch of messages",
        answer=Answer("Success", [schemas.BATCH]),
    ),
    EndpointSpec(
        method="DELETE",
        path=_ONE,
        handler=delete,
        operation_id="deleteMessageBatch",
        summary="Delete a batch of messages that has ended",
        answer=Answer("Success", [schemas.DELETED]),
    ),
    EndpointSpec(
        method="POST",
        path=f"{_ONE}/cancel",
        handler=cancel,
        operation_id="cancelMessageBatch",
        summary="Cancel a batch of messages",
        answer=Answer("Success", [schemas.BATCH]),
    ),
    EndpointSpec(
        method="GET",
        path=f"{_ONE}/results",
        handler=results,
        operation_id="getMessageBatchResults",
        summary="Get the results of a batch of messages",
        answer=Answer("A result a line", [schemas.RESULT], media_type=_LINES),
    ),
)
