"""The endpoints of stored conversations and their items, in OpenAI's format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import grpc

from facade.bodies import ReceivedBody
from facade.dialects import conversations, stored_responses
from facade.dialects.conversations import schemas
from facade.dialects.conversations.requests import ConversationBody, ItemsBody, UpdateBody
from facade.dialects.json_schemas import NAME
from facade.dialects.stored_responses.schemas import LIMIT
from facade.endpoint import Answer, Body, EndpointSpec, query_parameter
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.parsing import check_values
from facade.response_conversations import resolve_references
from facade.routes.generation import check_json, rpc_metadata
from facade.routes.stored_responses import INCLUDE, ITEM_PAGE
from gateway.memory.v1 import conversations_pb2_grpc
from gateway.memory.v1.conversations_pb2 import (
    CreateConversationRequest,
    CreateItemsRequest,
    DeleteConversationRequest,
    DeleteItemRequest,
    GetConversationRequest,
    GetItemRequest,
    ListConversationsRequest,
    ListItemsRequest,
    UpdateConversationRequest,
)
from gateway.memory.v1.responses_pb2 import ResponseItem
from services.common.errors import GatewayError, from_rpc_error
from services.common.process.byte_budget import Charge
from services.common.process.offload import offload_if

# Maximum bytes and JSON values of a body, which is parsed in this process.
_MAX_BODY = 16 << 20
_MAX_VALUES = 20_000
# JSON of more bytes is parsed in a thread.
_LARGE = 128 << 10

_T = TypeVar("_T")


async def create(exchange: Exchange) -> Response:
    """Create a conversation, optionally with items."""
    if exchange.has_body:
        noted, items = await _parsed(exchange, conversations.parse_create)
    else:
        noted, items = conversations.parse_create(b"{}")
    with exchange.charge() as charge:
        stored = await _stored(exchange, items, charge)
        rpc_request = CreateConversationRequest(metadata=noted, items=stored)
        try:
            created = await _service(exchange).CreateConversation(
                rpc_request, metadata=rpc_metadata(exchange)
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
    return JsonResponse(conversations.render_conversation(created.conversation))


async def list_all(exchange: Exchange) -> Response:
    """List the caller's conversations."""
    page = conversations.parse_page(exchange.query)
    rpc_request = ListConversationsRequest(page_size=page.limit, after=page.after)
    try:
        listed = await _service(exchange).ListConversations(
            rpc_request, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    return JsonResponse(
        conversations.render_conversations(listed.conversations, has_more=listed.has_more)
    )


async def retrieve(exchange: Exchange) -> Response:
    """Return a conversation."""
    rpc_request = GetConversationRequest(id=_name(exchange))
    try:
        found_conversation = await _service(exchange).GetConversation(
            rpc_request, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    return JsonResponse(conversations.render_conversation(found_conversation.conversation))


async def update(exchange: Exchange) -> Response:
    """Replace the metadata of a conversation."""
    noted = await _parsed(exchange, conversations.parse_update)
    rpc_request = UpdateConversationRequest(id=_name(exchange), metadata=noted)
    try:
        updated = await _service(exchange).UpdateConversation(
            rpc_request, metadata=rpc_metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    return JsonResponse(conversations.render_conversation(updated.conversation))


async def delete(exchange: Exchange) -> Response:
    """Delete a conversation."""
    name = _name(exchange)
    rpc_request = DeleteConversationRequest(id=name)
    try:
        await _service(exchange).DeleteConversation(rpc_request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    return JsonResponse(conversations.render_deleted(name))


async def create_items(exchange: Exchange) -> Response:
    """Append items to a conversation."""
    items = await _parsed(exchange, conversations.parse_items)
    with exchange.charge() as charge:
        stored = await _stored(exchange, items, charge)
        rpc_request = CreateItemsRequest(conversation_id=_name(exchange), items=stored)
        try:
            created = await _service(exchange).CreateItems(
                rpc_request, metadata=rpc_metadata(exchange)
            )
        except grpc.aio.AioRpcError as error:
            raise _error(error, exchange) from None
        return await _page(created.items, has_more=False)


async def list_items(exchange: Exchange) -> Response:
    """List the items of a conversation."""
    page = stored_responses.parse_items_query(exchange.query)
    rpc_request = ListItemsRequest(
        conversation_id=_name(exchange),
        page_size=page.limit,
        after=page.after,
        ascending=page.ascending,
    )
    try:
        with exchange.reading_response():
            listed = await _service(exchange).ListItems(
                rpc_request, metadata=rpc_metadata(exchange)
            )
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    return await _page(listed.items, has_more=listed.has_more)


async def retrieve_item(exchange: Exchange) -> Response:
    """Return an item of a conversation."""
    rpc_request = GetItemRequest(conversation_id=_name(exchange), id=_item_id(exchange))
    try:
        stored_item = await _service(exchange).GetItem(rpc_request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    item = stored_item.item
    return JsonResponse(await offload_if(len(item.json) > _LARGE, conversations.render_item, item))


async def delete_item(exchange: Exchange) -> Response:
    """Delete an item of a conversation, and return the conversation."""
    rpc_request = DeleteItemRequest(conversation_id=_name(exchange), id=_item_id(exchange))
    try:
        deleted = await _service(exchange).DeleteItem(rpc_request, metadata=rpc_metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise _error(error, exchange) from None
    return JsonResponse(conversations.render_conversation(deleted.conversation))


async def _parsed(exchange: Exchange, parse: Callable[[bytes], _T]) -> _T:
    """Return the parsed body of a request.

    Raises:
        GatewayError: too_large; invalid; 415 for another content type.
    """
    check_json(exchange)
    limit = exchange.context.settings.limits.max_body_bytes
    size, setting = min((limit, "limits.max_body_bytes"), (_MAX_BODY, ""))
    async with ReceivedBody(exchange, size, setting) as held:
        body = held.pop()
        return await offload_if(len(body) > _LARGE, _checked, body, parse)


def _checked(body: bytes, parse: Callable[[bytes], _T]) -> _T:
    check_values(body, _MAX_VALUES)
    return parse(body)


async def _stored(
    exchange: Exchange, items: conversations.Items, charge: Charge
) -> list[ResponseItem]:
    """Return the items to store, in which stored items replace the references."""
    resolved = await resolve_references(
        exchange.context.responses, items.json, items.references, rpc_metadata(exchange), charge
    )
    is_large = sum(map(len, resolved)) > _LARGE
    return await offload_if(is_large, conversations.stored_items, resolved)


async def _page(items: Sequence[ResponseItem], *, has_more: bool) -> Response:
    is_large = sum(len(item.json) for item in items) > _LARGE
    return JsonResponse(
        await offload_if(is_large, conversations.render_items, items, has_more=has_more)
    )


def _service(exchange: Exchange) -> conversations_pb2_grpc.ConversationServiceAsyncStub:
    return exchange.context.conversations


def _error(error: grpc.aio.AioRpcError, exchange: Exchange) -> GatewayError:
    """Convert the error of a call to one about the conversation, or the item, of the path."""
    name, item_id = _name(exchange), exchange.path_values.get("item_id", "")
    return conversations.item_error(from_rpc_error(error), name, item_id)


def _name(exchange: Exchange) -> str:
    return exchange.path_values["conversation_id"]


def _item_id(exchange: Exchange) -> str:
    return exchange.path_values["item_id"]


_PATH = "/beta/v1/conversations/{conversation_id}"
_CONVERSATION = Answer("Success", [schemas.CONVERSATION])

ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/beta/v1/conversations",
        handler=create,
        operation_id="createConversation",
        summary="Create a conversation",
        body=Body(ConversationBody, is_required=False, example={"metadata": {"topic": "tides"}}),
        answer=_CONVERSATION,
    ),
    EndpointSpec(
        method="GET",
        path="/beta/v1/conversations",
        handler=list_all,
        operation_id="listConversations",
        summary="List the caller's conversations, the latest change first",
        parameters=[
            query_parameter("limit", LIMIT),
            query_parameter("after", NAME, "Id of the last conversation of the previous page."),
        ],
        answer=Answer("Success", [schemas.CONVERSATIONS]),
    ),
    EndpointSpec(
        method="GET",
        path=_PATH,
        handler=retrieve,
        operation_id="getConversation",
        summary="Get a conversation",
        answer=_CONVERSATION,
    ),
    EndpointSpec(
        method="POST",
        path=_PATH,
        handler=update,
        operation_id="updateConversation",
        summary="Replace the metadata of a conversation",
        body=Body(UpdateBody, example={"metadata": {"topic": "tides"}}),
        answer=_CONVERSATION,
    ),
    EndpointSpec(
        method="DELETE",
        path=_PATH,
        handler=delete,
        operation_id="deleteConversation",
        summary="Delete a conversation",
        answer=Answer("Success", [schemas.DELETED]),
    ),
    EndpointSpec(
        method="POST",
        path=f"{_PATH}/items",
        handler=create_items,
        operation_id="createConversationItems",
        summary="Append items to a conversation",
        parameters=[INCLUDE],
        body=Body(ItemsBody, example={"items": [{"role": "user", "content": "Hello"}]}),
        answer=Answer("Success", [schemas.ITEMS]),
    ),
    EndpointSpec(
        method="GET",
        path=f"{_PATH}/items",
        handler=list_items,
        operation_id="listConversationItems",
        summary="List the items of a conversation",
        parameters=ITEM_PAGE,
        answer=Answer("Success", [schemas.ITEMS]),
    ),
    EndpointSpec(
        method="GET",
        path=f"{_PATH}/items/{{item_id}}",
        handler=retrieve_item,
        operation_id="getConversationItem",
        summary="Get an item of a conversation",
        parameters=[INCLUDE],
        answer=Answer("Success", [schemas.ITEM]),
    ),
    EndpointSpec(
        method="DELETE",
        path=f"{_PATH}/items/{{item_id}}",
        handler=delete_item,
        operation_id="deleteConversationItem",
        summary="Delete an item of a conversation",
        answer=_CONVERSATION,
    ),
)
