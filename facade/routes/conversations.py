"""The endpoints of stored conversations and their items, in OpenAI's format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import grpc
from aiohttp import web

from facade.bodies import ReceivedBody
from facade.context import CONTEXT
from facade.dialects import conversations, stored_responses
from facade.middlewares import EXCHANGE
from facade.parsing import check_values
from facade.response_conversations import resolve_references
from facade.routes.generation import check_json, metadata
from gateway.memory.v1 import conversations_pb2_grpc
from gateway.memory.v1.conversations_pb2 import (
    CreateConversationRequest,
    CreateItemsRequest,
    DeleteConversationRequest,
    DeleteItemRequest,
    GetConversationRequest,
    GetItemRequest,
    ListItemsRequest,
    UpdateConversationRequest,
)
from gateway.memory.v1.responses_pb2 import ResponseItem
from services.common.byte_budget import Charge
from services.common.errors import GatewayError, from_rpc_error
from services.common.offload import offload_if

# Maximum bytes and JSON values of a body, which is parsed in this process.
_MAX_BODY = 16 << 20
_MAX_VALUES = 20_000
# JSON of more bytes is parsed in a thread.
_LARGE = 128 << 10

_T = TypeVar("_T")


def routes() -> list[web.RouteDef]:
    """Return the routes of all endpoints."""
    one = "/beta/v1/conversations/{conversation_id}"
    return [
        web.post("/beta/v1/conversations", create),
        web.get(one, retrieve),
        web.post(one, update),
        web.delete(one, delete),
        web.post(f"{one}/items", create_items),
        web.get(f"{one}/items", list_items),
        web.get(f"{one}/items/{{item_id}}", retrieve_item),
        web.delete(f"{one}/items/{{item_id}}", delete_item),
    ]


async def create(request: web.Request) -> web.Response:
    """Create a conversation, optionally with items."""
    if request.body_exists:
        noted, items = await _parsed(request, conversations.parse_create)
    else:
        noted, items = conversations.parse_create(b"{}")
    with request[EXCHANGE].charge() as charge:
        stored = await _stored(request, items, charge)
        rpc_request = CreateConversationRequest(metadata=noted, items=stored)
        try:
            created = await _service(request).CreateConversation(
                rpc_request, metadata=metadata(request)
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
    return _json(conversations.render_conversation(created.conversation))


async def retrieve(request: web.Request) -> web.Response:
    """Return a conversation."""
    rpc_request = GetConversationRequest(id=_name(request))
    try:
        found = await _service(request).GetConversation(rpc_request, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise _error(error, request) from None
    return _json(conversations.render_conversation(found.conversation))


async def update(request: web.Request) -> web.Response:
    """Replace the metadata of a conversation."""
    noted = await _parsed(request, conversations.parse_update)
    rpc_request = UpdateConversationRequest(id=_name(request), metadata=noted)
    try:
        updated = await _service(request).UpdateConversation(
            rpc_request, metadata=metadata(request)
        )
    except grpc.aio.AioRpcError as error:
        raise _error(error, request) from None
    return _json(conversations.render_conversation(updated.conversation))


async def delete(request: web.Request) -> web.Response:
    """Delete a conversation."""
    name = _name(request)
    rpc_request = DeleteConversationRequest(id=name)
    try:
        await _service(request).DeleteConversation(rpc_request, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise _error(error, request) from None
    return _json(conversations.render_deleted(name))


async def create_items(request: web.Request) -> web.Response:
    """Append items to a conversation."""
    items = await _parsed(request, conversations.parse_items)
    with request[EXCHANGE].charge() as charge:
        stored = await _stored(request, items, charge)
        rpc_request = CreateItemsRequest(conversation_id=_name(request), items=stored)
        try:
            created = await _service(request).CreateItems(rpc_request, metadata=metadata(request))
        except grpc.aio.AioRpcError as error:
            raise _error(error, request) from None
        return await _page(created.items, has_more=False)


async def list_items(request: web.Request) -> web.Response:
    """List the items of a conversation."""
    page = stored_responses.parse_items_query(request.query)
    rpc_request = ListItemsRequest(
        conversation_id=_name(request),
        page_size=page.limit,
        after=page.after,
        ascending=page.ascending,
    )
    try:
        with request[EXCHANGE].reading_response():
            listed = await _service(request).ListItems(rpc_request, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise _error(error, request) from None
    return await _page(listed.items, has_more=listed.has_more)


async def retrieve_item(request: web.Request) -> web.Response:
    """Return an item of a conversation."""
    rpc_request = GetItemRequest(conversation_id=_name(request), id=_item_id(request))
    try:
        found = await _service(request).GetItem(rpc_request, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise _error(error, request) from None
    item = found.item
    return _json(await offload_if(len(item.json) > _LARGE, conversations.render_item, item))


async def delete_item(request: web.Request) -> web.Response:
    """Delete an item of a conversation, and return the conversation."""
    rpc_request = DeleteItemRequest(conversation_id=_name(request), id=_item_id(request))
    try:
        deleted = await _service(request).DeleteItem(rpc_request, metadata=metadata(request))
    except grpc.aio.AioRpcError as error:
        raise _error(error, request) from None
    return _json(conversations.render_conversation(deleted.conversation))


async def _parsed(request: web.Request, parse: Callable[[bytes], _T]) -> _T:
    """Return the parsed body of a request.

    Raises:
        GatewayError: too_large; invalid; 415 for another content type.
    """
    exchange = request[EXCHANGE]
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
    request: web.Request, items: conversations.Items, charge: Charge
) -> list[ResponseItem]:
    """Return the items to store, in which stored items replace the references."""
    resolved = await resolve_references(
        request.app[CONTEXT].responses, items.json, items.references, metadata(request), charge
    )
    is_large = sum(map(len, resolved)) > _LARGE
    return await offload_if(is_large, conversations.stored_items, resolved)


async def _page(items: Sequence[ResponseItem], *, has_more: bool) -> web.Response:
    is_large = sum(len(item.json) for item in items) > _LARGE
    return _json(await offload_if(is_large, conversations.render_items, items, has_more=has_more))


def _service(request: web.Request) -> conversations_pb2_grpc.ConversationServiceAsyncStub:
    return request.app[CONTEXT].conversations


def _error(error: grpc.aio.AioRpcError, request: web.Request) -> GatewayError:
    """Convert the error of a call to one about the conversation, or the item, of the path."""
    name, item_id = _name(request), request.match_info.get("item_id", "")
    return conversations.item_error(from_rpc_error(error), name, item_id)


def _name(request: web.Request) -> str:
    return request.match_info["conversation_id"]


def _item_id(request: web.Request) -> str:
    return request.match_info["item_id"]


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")
