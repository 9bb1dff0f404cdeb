"""The endpoints of batches, in OpenAI's format."""

import grpc

from facade.bodies import ReceivedBody
from facade.dialects.json_schemas import NAME
from facade.dialects.openai import batch_schemas as schemas
from facade.dialects.openai import batches
from facade.endpoint import Answer, Body, EndpointSpec, query_parameter
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.routes.generation import check_json, rpc_metadata
from gateway.batches.v1.batches_pb2 import CancelBatchRequest, GetBatchRequest
from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI
from services.common.errors import GatewayError, from_rpc_error

# Maximum bytes of a body; metadata has 16 pairs.
_MAX_BODY = 64 << 10


async def create(exchange: Exchange) -> Response:
    """Create a batch from a file of requests."""
    check_json(exchange)
    body = exchange.take_body(_MAX_BODY)
    if body is None:
        async with ReceivedBody(exchange, _MAX_BODY) as held:
            body = held.pop()
    request = batches.parse_batch(body)
    try:
        created = await exchange.context.batches.CreateBatch(
            request, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    return JsonResponse(batches.render_batch(created.batch))


async def retrieve(exchange: Exchange) -> Response:
    """Return a batch."""
    request = GetBatchRequest(id=_name(exchange), dialect=DIALECT_OPENAI)
    try:
        answer = await exchange.context.batches.GetBatch(request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    return JsonResponse(batches.render_batch(answer.batch))


async def list_batches(exchange: Exchange) -> Response:
    """Return a page of the caller's batches."""
    request = batches.parse_batch_list(exchange.query)
    try:
        page = await exchange.context.batches.ListBatches(request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise batches.list_error(from_rpc_error(error)) from None
    return JsonResponse(batches.render_batch_list(page))


async def cancel(exchange: Exchange) -> Response:
    """Cancel a batch."""
    request = CancelBatchRequest(id=_name(exchange), dialect=DIALECT_OPENAI)
    try:
        answer = await exchange.context.batches.CancelBatch(
            request, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    return JsonResponse(batches.render_batch(answer.batch))


def _error(error: grpc.aio.AioRpcError, exchange: Exchange) -> GatewayError:
    return batches.batch_error(from_rpc_error(error), _name(exchange))


def _name(exchange: Exchange) -> str:
    return exchange.path_values["batch_id"]


_PATH = "/beta/v1/batches"
_ONE = f"{_PATH}/{{batch_id}}"
_EXAMPLE = {
    "input_file_id": "file-01JZ6QXV9T2M4N8P0R3S5W7Y9B",
    "endpoint": "/v1/chat/completions",
    "completion_window": "24h",
}

ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path=_PATH,
        handler=create,
        operation_id="createBatch",
        summary="Create a batch from a file of requests",
        body=Body(batches.BatchBody, example=_EXAMPLE),
        answer=Answer("The batch", [schemas.BATCH]),
    ),
    EndpointSpec(
        method="GET",
        path=_PATH,
        handler=list_batches,
        operation_id="listBatches",
        summary="List batches, the newest first",
        parameters=[
            query_parameter("limit", schemas.LIMIT),
            query_parameter("after", NAME, "Id of the last batch of the previous page."),
        ],
        answer=Answer("Success", [schemas.BATCHES]),
    ),
    EndpointSpec(
        method="GET",
        path=_ONE,
        handler=retrieve,
        operation_id="getBatch",
        summary="Get a batch",
        answer=Answer("Success", [schemas.BATCH]),
    ),
    EndpointSpec(
        method="POST",
        path=f"{_ONE}/cancel",
        handler=cancel,
        operation_id="cancelBatch",
        summary="Cancel a batch",
        answer=Answer("Success", [schemas.BATCH]),
    ),
)
