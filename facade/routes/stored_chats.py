"""The endpoints of stored chat completions: list, GET, update, DELETE, and their messages."""

from typing import Any

import grpc

from facade.bodies import ReceivedBody
from facade.dialects.json_schemas import NAME
from facade.dialects.stored_chats import schemas
from facade.dialects.stored_chats.answers import (
    chat_error,
    render_chat,
    render_chats,
    render_deleted,
    render_messages,
)
from facade.dialects.stored_chats.queries import (
    UpdateChatBody,
    parse_labels,
    parse_page,
    parse_update,
)
from facade.endpoint import Answer, Body, EndpointSpec, query_parameter
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.routes.generation import check_json, rpc_metadata
from gateway.memory.v1.chats_pb2 import (
    DeleteChatCompletionRequest,
    GetChatCompletionRequest,
    GetChatCompletionResponse,
    ListChatCompletionsRequest,
    UpdateChatCompletionRequest,
)
from services.common.errors import from_rpc_error
from services.common.process.offload import offload_if

_MAX_BODY = 1 << 20
# JSON of more bytes is written in a thread.
_LARGE = 128 << 10


async def list_chats(exchange: Exchange) -> Response:
    """List the caller's stored chat completions."""
    query = exchange.query
    page = parse_page(query)
    rpc_request = ListChatCompletionsRequest(
        page_size=page.limit,
        after=page.after,
        descending=page.descending,
        model=query.get("model", ""),
        metadata=parse_labels(query),
    )
    with exchange.reading_response():
        listed = await _call(exchange, "ListChatCompletions", rpc_request)
    is_large = sum(len(chat.completion) for chat in listed.chat_completions) > _LARGE
    return JsonResponse(
        await offload_if(is_large, render_chats, listed.chat_completions, has_more=listed.has_more)
    )


async def retrieve(exchange: Exchange) -> Response:
    """Return a stored chat completion."""
    chat = (await _get(exchange)).chat_completion
    return JsonResponse(await offload_if(len(chat.completion) > _LARGE, render_chat, chat))


async def update(exchange: Exchange) -> Response:
    """Replace the metadata of a stored chat completion."""
    check_json(exchange)
    async with ReceivedBody(exchange, _MAX_BODY) as held:
        metadata = parse_update(held.pop())
    rpc_request = UpdateChatCompletionRequest(id=_name(exchange), metadata=metadata)
    updated = await _call(exchange, "UpdateChatCompletion", rpc_request)
    return JsonResponse(render_chat(updated.chat_completion))


async def delete(exchange: Exchange) -> Response:
    """Delete a stored chat completion."""
    name = _name(exchange)
    await _call(exchange, "DeleteChatCompletion", DeleteChatCompletionRequest(id=name))
    return JsonResponse(render_deleted(name))


async def list_messages(exchange: Exchange) -> Response:
    """List the messages that a stored chat completion answers."""
    page = parse_page(exchange.query)
    chat = (await _get(exchange)).chat_completion
    return JsonResponse(await offload_if(len(chat.messages) > _LARGE, render_messages, chat, page))


async def _get(exchange: Exchange) -> GetChatCompletionResponse:
    rpc_request = GetChatCompletionRequest(id=_name(exchange))
    with exchange.reading_response():
        answer: GetChatCompletionResponse = await _call(exchange, "GetChatCompletion", rpc_request)
    return answer


async def _call(exchange: Exchange, method: str, rpc_request: Any) -> Any:
    """Call a method of the service, and convert its error to one about the path's object."""
    try:
        return await getattr(exchange.context.chats, method)(
            rpc_request, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        name = exchange.path_values.get("completion_id", "")
        raise chat_error(from_rpc_error(error), name) from None


def _name(exchange: Exchange) -> str:
    return exchange.path_values["completion_id"]


_CHATS = "/beta/v1/chat/completions"
_PATH = f"{_CHATS}/{{completion_id}}"
_PAGE = (
    query_parameter("limit", schemas.LIMIT),
    query_parameter("order", schemas.ORDER, "Order by time of creation."),
    query_parameter("after", NAME, "Id of the last object of the previous page."),
)
_CHAT = Answer("Success", [schemas.CHAT])

ENDPOINTS = (
    EndpointSpec(
        method="GET",
        path=_CHATS,
        handler=list_chats,
        operation_id="listChatCompletions",
        summary="List stored chat completions",
        parameters=(
            *_PAGE,
            query_parameter("model", NAME, "Only chat completions of this model."),
            query_parameter(
                "metadata[key]", NAME, "Only chat completions with this value of `key`."
            ),
        ),
        answer=Answer("Success", [schemas.CHATS]),
    ),
    EndpointSpec(
        method="GET",
        path=_PATH,
        handler=retrieve,
        operation_id="getChatCompletion",
        summary="Get a stored chat completion",
        answer=_CHAT,
    ),
    EndpointSpec(
        method="POST",
        path=_PATH,
        handler=update,
        operation_id="updateChatCompletion",
        summary="Replace the metadata of a stored chat completion",
        body=Body(UpdateChatBody, example={"metadata": {"topic": "tides"}}),
        answer=_CHAT,
    ),
    EndpointSpec(
        method="DELETE",
        path=_PATH,
        handler=delete,
        operation_id="deleteChatCompletion",
        summary="Delete a stored chat completion",
        answer=Answer("Success", [schemas.DELETED]),
    ),
    EndpointSpec(
        method="GET",
        path=f"{_PATH}/messages",
        handler=list_messages,
        operation_id="listChatCompletionMessages",
        summary="List the messages that a stored chat completion answers",
        parameters=_PAGE,
        answer=Answer("Success", [schemas.MESSAGES]),
    ),
)
