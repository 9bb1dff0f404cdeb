"""The gRPC servicer of ConversationService: validates requests and converts results."""

from collections.abc import Coroutine
from typing import Any

import grpc

from gateway.memory.v1 import conversations_pb2, conversations_pb2_grpc
from services.common.errors import invalid
from services.common.grpc.authentication import Caller, caller
from services.common.ids import is_conversation_id
from services.common.plans import limit_of, plan_name
from services.common.process.byte_budget import ByteBudget
from services.common.settings import MemoryStorage
from services.common.storage.disk import DiskReserve
from services.responses.charged_reads import reading_items
from services.responses.conversations.records import conversation_not_found, item_not_found
from services.responses.conversations.repository import ConversationRepository
from services.responses.conversations.rows import ReadItems
from services.responses.item_checks import check_items, is_item_id, page_size

SERVICE_NAME = conversations_pb2.DESCRIPTOR.services_by_name["ConversationService"].full_name

_MAX_METADATA = 1 << 16  # bytes

Context = grpc.aio.ServicerContext[Any, Any]


class ConversationServicer(conversations_pb2_grpc.ConversationServiceServicer):
    """Serves the RPCs of `conversations.proto`; failures are raised as GatewayError.

    Args:
        repository: the stored conversations.
        storage: storage quotas of users, by plan.
        reserve: the free disk space that storing requires.
        budget: limits the bytes that the process holds.
    """

    def __init__(
        self,
        repository: ConversationRepository,
        storage: MemoryStorage,
        reserve: DiskReserve,
        budget: ByteBudget,
    ) -> None:
        self._budget = budget
        self._repository = repository
        self._storage = storage
        self._reserve = reserve

    async def CreateConversation(
        self, request: conversations_pb2.CreateConversationRequest, context: Context
    ) -> conversations_pb2.CreateConversationResponse:
        """Create a conversation."""
        owner = caller.get()
        _check_metadata(request.metadata)
        check_items(request.items, "items")
        self._reserve.check()
        created = await self._repository.create(
            owner.user_id, self._max_bytes(owner), request.metadata, request.items
        )
        return conversations_pb2.CreateConversationResponse(conversation=created)

    async def GetConversation(
        self, request: conversations_pb2.GetConversationRequest, context: Context
    ) -> conversations_pb2.GetConversationResponse:
        """Return a conversation."""
        conversation = await self._repository.find(caller.get().user_id, _possible(request.id))
        return conversations_pb2.GetConversationResponse(conversation=conversation)

    async def ListConversations(
        self, request: conversations_pb2.ListConversationsRequest, context: Context
    ) -> conversations_pb2.ListConversationsResponse:
        """List the caller's conversations."""
        size = page_size(request)
        if request.after and not is_conversation_id(request.after):
            raise invalid("after", "after: must be the id of one of your conversations")
        listed, has_more = await self._repository.list_of(caller.get().user_id, size, request.after)
        return conversations_pb2.ListConversationsResponse(conversations=listed, has_more=has_more)

    async def UpdateConversation(
        self, request: conversations_pb2.UpdateConversationRequest, context: Context
    ) -> conversations_pb2.UpdateConversationResponse:
        """Replace the metadata of a conversation."""
        owner = caller.get()
        _check_metadata(request.metadata)
        conversation_id = _possible(request.id)
        self._reserve.check()
        updated = await self._repository.update(
            owner.user_id, self._max_bytes(owner), conversation_id, request.metadata
        )
        return conversations_pb2.UpdateConversationResponse(conversation=updated)

    async def DeleteConversation(
        self, request: conversations_pb2.DeleteConversationRequest, context: Context
    ) -> conversations_pb2.DeleteConversationResponse:
        """Delete a conversation."""
        await self._repository.delete(caller.get().user_id, _possible(request.id))
        return conversations_pb2.DeleteConversationResponse()

    async def CreateItems(
        self, request: conversations_pb2.CreateItemsRequest, context: Context
    ) -> conversations_pb2.CreateItemsResponse:
        """Append items to a conversation."""
        owner = caller.get()
        check_items(request.items, "items")
        conversation_id = _possible(request.conversation_id)
        self._reserve.check()
        appended = await self._repository.append(
            owner.user_id, self._max_bytes(owner), conversation_id, request.items
        )
        return conversations_pb2.CreateItemsResponse(items=appended)

    async def GetItem(
        self, request: conversations_pb2.GetItemRequest, context: Context
    ) -> conversations_pb2.GetItemResponse:
        """Return an item."""
        item = await self._repository.find_item(
            caller.get().user_id, _possible(request.conversation_id), _possible_item(request.id)
        )
        return conversations_pb2.GetItemResponse(item=item)

    async def DeleteItem(
        self, request: conversations_pb2.DeleteItemRequest, context: Context
    ) -> conversations_pb2.DeleteItemResponse:
        """Delete an item."""
        conversation = await self._repository.delete_item(
            caller.get().user_id, _possible(request.conversation_id), _possible_item(request.id)
        )
        return conversations_pb2.DeleteItemResponse(conversation=conversation)

    async def ListItems(
        self, request: conversations_pb2.ListItemsRequest, context: Context
    ) -> conversations_pb2.ListItemsResponse:
        """List items of a conversation."""
        size = page_size(request)
        if request.after and not is_item_id(request.after):
            raise invalid("after", "after: must be the id of an item of this conversation")
        page_items, has_more = await self._repository.page(
            caller.get().user_id,
            _possible(request.conversation_id),
            size,
            request.after,
            ascending=request.ascending,
        )
        return conversations_pb2.ListItemsResponse(items=page_items, has_more=has_more)

    async def ReadItems(
        self, request: conversations_pb2.ReadItemsRequest, context: Context
    ) -> conversations_pb2.ReadItemsResponse:
        """Return all items of a conversation."""
        user_id, conversation_id = caller.get().user_id, _possible(request.conversation_id)

        def read(max_bytes: int | None) -> Coroutine[Any, Any, ReadItems]:
            return self._repository.read(
                user_id, conversation_id, request.new_items, request.new_bytes, max_bytes
            )

        async with reading_items(
            self._budget, user_id, context, request.max_bytes, read
        ) as stored_items:
            return conversations_pb2.ReadItemsResponse(
                items=stored_items.items,
                last_position=stored_items.last_position,
                omitted_bytes=stored_items.omitted_bytes,
            )

    def _max_bytes(self, owner: Caller) -> int:
        return limit_of(self._storage, plan_name(owner.plan))


def _check_metadata(metadata: bytes) -> None:
    if len(metadata) > _MAX_METADATA:
        raise invalid("metadata", f"metadata: must have at most {_MAX_METADATA} bytes")


def _possible(conversation_id: str) -> str:
    """Return a conversation id, checked to be valid.

    Raises:
        GatewayError: not_found, no conversation can have that id.
    """
    if not is_conversation_id(conversation_id):
        raise conversation_not_found(conversation_id)
    return conversation_id


def _possible_item(item_id: str) -> str:
    """Return an item id, checked to be valid.

    Raises:
        GatewayError: not_found, no item can have that id.
    """
    if not is_item_id(item_id):
        raise item_not_found(item_id)
    return item_id
