"""The gRPC servicer of ChatCompletionService: validates requests and converts results."""

from typing import Any

import grpc

from gateway.memory.v1 import chats_pb2, chats_pb2_grpc
from services.common.grpc.authentication import Caller, caller
from services.common.plans import limit_of, plan_name
from services.common.settings import MemoryStorage
from services.common.storage.disk import DiskReserve
from services.responses.chats.records import (
    chat_not_found,
    check_metadata,
    check_new,
    is_chat_id,
)
from services.responses.chats.repository import ChatRepository
from services.responses.item_checks import page_size

SERVICE_NAME = chats_pb2.DESCRIPTOR.services_by_name["ChatCompletionService"].full_name

Context = grpc.aio.ServicerContext[Any, Any]


class ChatServicer(chats_pb2_grpc.ChatCompletionServiceServicer):
    """Serves the RPCs of `chats.proto`; failures are raised as GatewayError.

    Args:
        repository: the stored chat completions.
        storage: storage quotas of users, by plan.
        reserve: the free disk space that storing requires.
    """

    def __init__(
        self, repository: ChatRepository, storage: MemoryStorage, reserve: DiskReserve
    ) -> None:
        self._repository = repository
        self._storage = storage
        self._reserve = reserve

    async def CreateChatCompletion(
        self, request: chats_pb2.CreateChatCompletionRequest, context: Context
    ) -> chats_pb2.CreateChatCompletionResponse:
        """Store a chat completion."""
        owner = caller.get()
        check_new(request.chat_completion)
        self._reserve.check()
        await self._repository.create(
            owner.user_id, self._max_bytes(owner), request.chat_completion
        )
        return chats_pb2.CreateChatCompletionResponse()

    async def GetChatCompletion(
        self, request: chats_pb2.GetChatCompletionRequest, context: Context
    ) -> chats_pb2.GetChatCompletionResponse:
        """Return a chat completion."""
        chat = await self._repository.find(caller.get().user_id, _possible(request.id))
        return chats_pb2.GetChatCompletionResponse(chat_completion=chat)

    async def ListChatCompletions(
        self, request: chats_pb2.ListChatCompletionsRequest, context: Context
    ) -> chats_pb2.ListChatCompletionsResponse:
        """List chat completions."""
        check_metadata(request.metadata)
        listed, has_more = await self._repository.page(
            caller.get().user_id,
            page_size(request),
            request.after,
            descending=request.descending,
            model=request.model,
            metadata=request.metadata,
        )
        return chats_pb2.ListChatCompletionsResponse(chat_completions=listed, has_more=has_more)

    async def UpdateChatCompletion(
        self, request: chats_pb2.UpdateChatCompletionRequest, context: Context
    ) -> chats_pb2.UpdateChatCompletionResponse:
        """Replace the metadata of a chat completion."""
        owner = caller.get()
        chat_id = _possible(request.id)
        check_metadata(request.metadata)
        updated = await self._repository.update(
            owner.user_id, self._max_bytes(owner), chat_id, request.metadata
        )
        return chats_pb2.UpdateChatCompletionResponse(chat_completion=updated)

    async def DeleteChatCompletion(
        self, request: chats_pb2.DeleteChatCompletionRequest, context: Context
    ) -> chats_pb2.DeleteChatCompletionResponse:
        """Delete a chat completion."""
        await self._repository.delete(caller.get().user_id, _possible(request.id))
        return chats_pb2.DeleteChatCompletionResponse()

    def _max_bytes(self, owner: Caller) -> int:
        return limit_of(self._storage, plan_name(owner.plan))


def _possible(chat_id: str) -> str:
    """Return an id, checked to be valid.

    Raises:
        GatewayError: not_found, no chat completion can have that id.
    """
    if not is_chat_id(chat_id):
        raise chat_not_found(chat_id)
    return chat_id
